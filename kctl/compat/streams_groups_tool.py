"""`kafka-streams-groups`: its options, their valid combinations, its failures. Only in 4.3.0.

A failure of the command is printed on stdout with exit code 1; invalid options also end with 1.

Source: StreamsGroupCommand.execute, StreamsGroupCommandOptions of 4.3.0.

Differs: if several options exclude one, the first in the table is named; the order of Java's set
varies between processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.ports import Files
from kctl import exits
from kctl.compat.group_answers import connect_client
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    exclude,
    listed_names,
    refused,
    require,
)
from kctl.compat.releases import Release
from kctl.compat.streams_groups_changes import delete_streams_groups, delete_streams_offsets
from kctl.compat.streams_groups_reset import reset_streams_offsets
from kctl.compat.streams_groups_views import describe_streams_groups, list_streams_groups

SUMMARY = "Lists and describes streams groups, deletes them, and resets or deletes their offsets."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("timeout", "Milliseconds to wait for a response, 30000 by default.", "NUMBER"),
    ToolOption("list", "List groups."),
    ToolOption(
        "state",
        "List: show states, or only these. Describe: the state.",
        "STATE,...",
        is_value_optional=True,
        available_if=("describe", "list"),
    ),
    ToolOption("describe", "Show what groups read, and how far behind they are."),
    ToolOption(
        "offsets", "Describe: the offsets, which is the default.", available_if=("describe",)
    ),
    ToolOption("members", "Describe: the members with their tasks.", available_if=("describe",)),
    ToolOption("verbose", "Describe: with epochs and targets.", available_if=("describe",)),
    ToolOption("delete", "Delete groups that have no members."),
    ToolOption("delete-offsets", "Delete what a group committed for topics."),
    ToolOption("reset-offsets", "Set the offsets of groups that have no members."),
    ToolOption("group", "The group; may be repeated.", "GROUP"),
    ToolOption("all-groups", "All streams groups."),
    ToolOption("input-topic", "A topic, or TOPIC:PARTITION,...; may be repeated.", "TOPIC"),
    ToolOption("all-input-topics", "All source topics of the group's topology."),
    ToolOption("dry-run", "Reset: only show the new offsets."),
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
    ToolOption("delete-internal-topic", "Reset: delete this topic; may be repeated.", "TOPIC"),
    ToolOption(
        "delete-all-internal-topics", "Reset, delete: delete the internal topics of the groups."
    ),
    HELP,
    VERSION,
)
_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_SCOPES: Final = ("all-groups", "group")
_VIEWS: Final = ("members", "offsets", "state")
_SCENARIOS: Final = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-streams-groups, which only release 4 has."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-streams-groups, and return the one action they request.

    Errors: OptionsRefused.
    """
    require(given, "bootstrap-server")
    if given.has("describe"):
        _check_describe(given)
    if given.has("delete"):
        _need_scope(given, "delete")
        if given.has("input-topic") or given.has("all-input-topics"):
            raise refused(
                "Kafka Streams does not support topic-specific offset deletion from a streams "
                "group."
            )
    if given.has("delete-offsets"):
        _check_delete_offsets(given)
    if given.has("reset-offsets"):
        _check_reset(given)
    _check_internal_topics(given)
    if (given.has("dry-run") or given.has("execute")) and not given.has("reset-offsets"):
        raise refused("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    exclude(given, "list", ("members", "offsets"))
    exclude(given, "group", ("all-groups", "list"))
    exclude(given, "input-topic", ("list", "describe", "delete"))
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        *first, last = (f"--{name}" for name in _ACTIONS)
        named = f"{', '.join(first)}, or {last}"
        raise refused(f"Command must include exactly one action: {named}.")
    return actions[0]


def _check_describe(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --describe has groups, at most one view, and --state no value."""
    _need_scope(given, "describe")
    if sum(map(given.has, _VIEWS)) > 1:
        raise refused(
            f"Option [describe] takes at most one of these options: {listed_names(_VIEWS)}"
        )
    if given.has("state") and given.text("state") is not None:
        raise refused("Option [describe] does not take a value for [state]")


def _check_delete_offsets(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --delete-offsets has topics and exactly one group."""
    has_topics = given.has("input-topic") or given.has("all-input-topics")
    if not has_topics or not given.has("group"):
        raise refused(
            "Option [delete-offsets] takes the [group] and one of these options: "
            "[all-input-topics], [input-topic]"
        )
    if len(groups := given.texts("group")) > 1:
        raise refused(
            "Option [delete-offsets] supports only one [group] at a time, but found: "
            f"[{', '.join(groups)}]"
        )


def _check_reset(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --reset-offsets has an action, groups, at most one scenario."""
    if given.has("dry-run") and given.has("execute"):
        raise refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.has("dry-run") and not given.has("execute"):
        raise refused("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    _need_scope(given, "reset-offsets")
    for scenario in _SCENARIOS:
        exclude(given, scenario, [other for other in _SCENARIOS if other != scenario])


def _check_internal_topics(given: GivenOptions) -> None:
    """Raise OptionsRefused if internal topics are to be deleted without the action it needs."""
    is_executed = given.has("reset-offsets") and given.has("execute")
    if given.has("delete-all-internal-topics"):
        name = "delete-all-internal-topics"
        if not given.has("reset-offsets") and not given.has("delete"):
            raise refused(f"Option [{name}] takes one of these options: [delete], [reset-offsets]")
        if given.has("reset-offsets") and not is_executed:
            raise refused(f"Option [{name}] takes [execute] when [reset-offsets] is used.")
    elif given.has("delete-internal-topic") and not is_executed:
        raise refused(
            "Option [delete-internal-topic] takes [reset-offsets] when [execute] is used."
        )


def _need_scope(given: GivenOptions, action: str) -> None:
    """Raise OptionsRefused unless options name the groups of an action."""
    if not any(map(given.has, _SCOPES)):
        raise refused(f"Option [{action}] takes one of these options: {listed_names(_SCOPES)}")


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-streams-groups: perform `action`, and print its results; returns the exit code.

    Errors: OptionsRefused.
    """
    try:
        with connect_client(connect) as client:
            _check_values(given)
            if action == "list":
                list_streams_groups(client, given, out)
            elif action == "describe":
                describe_streams_groups(client, given, out)
            elif action == "delete":
                delete_streams_groups(client, given, out, err)
            elif action == "delete-offsets":
                delete_streams_offsets(client, given, out)
            else:
                reset_streams_offsets(client, given, files, out, err)
    except OptionsRefused:
        raise
    except EngineError as error:
        if isinstance(error, ToolFailure) and _is_of_options(error):
            raise refused(str(error)) from error
        out.write(f"\nError: Executing streams group command failed due to {error}\n")
        err.write(error.trace() if isinstance(error, ToolFailure) else f"{error}\n")
        return exits.FAILED
    return exits.OK


def _is_of_options(failure: ToolFailure) -> bool:
    """Return True if a failure concerns the options, so that the tool prints its usage."""
    return failure.java_class.startswith("joptsimple.") or failure.java_class == ILLEGAL_ARGUMENT


def _check_values(given: GivenOptions) -> None:
    """Raise ToolFailure for an invalid number, even if no action uses it."""
    given.numbers("to-offset")
    given.text("by-duration")
    given.number("shift-by", 0)
    given.number("timeout", 0)
