"""`kafka-consumer-groups`: its options, their valid combinations, and its failures.

A failure of the command is printed on stdout with exit code 0; contradictory options end with exit
code 1.

Source: ConsumerGroupCommand.main, ConsumerGroupCommandOptions of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.ports import Files
from kctl import exits
from kctl.compat.group_answers import connect_client
from kctl.compat.groups_changes import delete_selected_groups, delete_selected_offsets
from kctl.compat.groups_reset import reset_selected_groups
from kctl.compat.groups_views import describe_selected_groups, print_groups
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    listed_names,
)
from kctl.compat.releases import Release

SUMMARY = "Lists and describes consumer groups, deletes them, and resets or deletes their offsets."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("timeout", "Milliseconds to wait for a response, 5000 by default.", "NUMBER"),
    ToolOption("list", "List groups."),
    ToolOption(
        "state",
        "List: show states, or only these. Describe: the state.",
        "STATE,...",
        is_value_optional=True,
        available_if=("describe", "list"),
    ),
    ToolOption(
        "type",
        "List: show types, or only these.",
        "TYPE,...",
        is_value_optional=True,
        available_if=("list",),
    ),
    ToolOption("describe", "Show the offsets of groups and how far behind they are."),
    ToolOption(
        "offsets", "Describe: the offsets, which is the default.", available_if=("describe",)
    ),
    ToolOption("members", "Describe: the members.", available_if=("describe",)),
    ToolOption(
        "verbose", "Describe: with the assignment of each member.", available_if=("describe",)
    ),
    ToolOption("delete", "Delete groups that have no members."),
    ToolOption("delete-offsets", "Delete what a group committed for topics."),
    ToolOption("reset-offsets", "Set the offsets of groups that have no members."),
    ToolOption("group", "The group; may be repeated.", "GROUP"),
    ToolOption("all-groups", "All groups."),
    ToolOption("topic", "A topic, or TOPIC:PARTITION,...; may be repeated.", "TOPIC"),
    ToolOption("all-topics", "Reset: every topic that the group committed for."),
    ToolOption("dry-run", "Reset: only show the new offsets. The default."),
    ToolOption("execute", "Reset: do it."),
    ToolOption("export", "Reset: print CSV."),
    ToolOption("to-offset", "Reset: to this offset.", "NUMBER"),
    ToolOption("to-datetime", "Reset: to a time, as 2026-01-31T12:00:00.000.", "TIME"),
    ToolOption("by-duration", "Reset: to so long ago, as P1DT2H.", "DURATION"),
    ToolOption("to-earliest", "Reset: to the first offset."),
    ToolOption("to-latest", "Reset: to the end."),
    ToolOption("to-current", "Reset: to what is committed; to the end where nothing is."),
    ToolOption("shift-by", "Reset: by this many records, back if negative.", "NUMBER"),
    ToolOption("from-file", "Reset: to the offsets of a CSV file.", "FILE"),
    HELP,
    VERSION,
)
_VALIDATE = ToolOption("validate-regex", "Not served.", "REGEX")

_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
#: Options in the order of Java's HashSet.
_SCENARIOS = (
    "to-offset",
    "to-current",
    "to-datetime",
    "from-file",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
)
_SCENARIOS_CHECKED = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
_VIEWS = ("members", "offsets", "state")
_LEVELS = ("reset-offsets", "describe", "delete", "list")
_SCOPES = ("all-groups", "group")
_NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing."
    "In a future major release, the default behavior of this command will be to prompt the user "
    "before executing the reset rather than doing a dry run. You should add the --dry-run option "
    "explicitly if you are scripting this command and want to keep the current default behavior "
    "without prompting."
)


_NO_ACTION_4 = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
    "command will require either --dry-run or --execute to be specified. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current "
    "default behavior without prompting."
)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-consumer-groups has in a release."""
    return (*_OPTIONS, *([_VALIDATE] if release.is_four else []))


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-consumer-groups, and return the one action they request.

    Errors: OptionsRefused.
    """
    if given.has("validate-regex"):
        # This would need RE2's syntax, and the messages of its Java port.
        raise OptionsRefused("--validate-regex is not served; --bootstrap-server is")
    if not given.has("bootstrap-server"):
        raise _refused('Missing required argument "[bootstrap-server]"')
    if given.has("describe"):
        _check_describe(given)
    if given.has("delete"):
        _need_scope(given, "delete")
        if given.has("topic"):
            raise _refused(
                "The consumer does not support topic-specific offset deletion from a consumer "
                "group."
            )
    if given.has("delete-offsets") and not (given.has("group") and given.has("topic")):
        needed = ("group", "topic") if given.is_four else _SCOPES
        raise _refused(
            f"Option [delete-offsets] takes the following options: {listed_names(needed)}"
        )
    if given.has("reset-offsets"):
        _check_reset(given)
    _exclude(given, "group", ("all-groups",))
    _exclude(given, "group", ("list",))
    _exclude(given, "topic", ("describe", "list"))
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        named = (*_ACTIONS, "validate-regex") if given.is_four else _ACTIONS
        raise _refused(
            "Command must include exactly one action: " + ", ".join(f"--{name}" for name in named)
        )
    return actions[0]


def _check_describe(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --describe has groups and at most one view.

    --state must not have a value.
    """
    if not any(map(given.has, _SCOPES)):
        levels = ("group", "all-groups") if given.is_four else _LEVELS
        raise _refused(f"Option [describe] takes one of these options: {listed_names(levels)}")
    if sum(map(given.has, _VIEWS)) > 1:
        raise _refused(
            f"Option [describe] takes at most one of these options: {listed_names(_VIEWS)}"
        )
    if given.has("state") and given.text("state") is not None:
        raise _refused("Option [describe] does not take a value for [state]")


def _check_reset(given: GivenOptions) -> None:
    """Raise OptionsRefused for contradictory options of --reset-offsets.

    Prints a warning if neither --dry-run nor --execute is given.
    """
    if given.has("dry-run") and given.has("execute"):
        raise _refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.has("dry-run") and not given.has("execute"):
        sys.stderr.write(f"{_NO_ACTION_4 if given.is_four else _NO_ACTION}\n")
    _need_scope(given, "reset-offsets")
    for scenario in _SCENARIOS_CHECKED:
        _exclude(given, scenario, [other for other in _SCENARIOS if other != scenario])


def _need_scope(given: GivenOptions, action: str) -> None:
    """Raise OptionsRefused unless options name the groups of an action."""
    if not any(map(given.has, _SCOPES)):
        raise _refused(f"Option [{action}] takes one of these options: {listed_names(_SCOPES)}")


def _exclude(given: GivenOptions, name: str, others: Sequence[str]) -> None:
    """Raise OptionsRefused if an option is given together with one of `others`."""
    for other in others:
        if given.has(name) and given.has(other):
            raise _refused(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def _refused(message: str) -> OptionsRefused:
    """Return the error for contradictory options, which is printed with the usage."""
    return OptionsRefused(message, shows_usage=True)


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-consumer-groups: perform `action`, and print its results; returns the exit code.

    Errors: OptionsRefused; other errors are printed, and the exit code is 0, as in Kafka.
    """
    try:
        with connect_client(connect) as client:
            given.number("timeout", 0)
            if action == "list":
                print_groups(client, given, out)
            elif action == "describe":
                describe_selected_groups(client, given, out, err)
            elif action == "delete":
                delete_selected_groups(client, given, out)
            elif action == "delete-offsets":
                delete_selected_offsets(client, given, out)
            else:
                reset_selected_groups(client, given, files, out, err)
    except OptionsRefused:
        raise
    except EngineError as error:
        out.write(f"\nError: Executing consumer group command failed due to {error}\n")
        err.write(error.trace() if isinstance(error, ToolFailure) else f"{error}\n")
    return exits.OK
