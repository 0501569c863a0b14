"""`kafka-share-groups`: its options, their valid combinations, its failures. Only in 4.3.0.

A failure of the command is printed on stdout with exit code 0; invalid options, and a reset for a
group with members, end with exit code 1.

Source: ShareGroupCommand.main, ShareGroupCommandOptions of 4.3.0.

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
from kctl.compat.java_failures import TerseFailure, ToolFailure
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
from kctl.compat.share_groups_changes import (
    delete_share_groups,
    delete_share_start_offsets,
    reset_share_start_offsets,
)
from kctl.compat.share_groups_views import describe_share_groups, list_share_groups

SUMMARY = "Lists and describes share groups, deletes them, and resets or deletes their offsets."
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
    ToolOption("describe", "Show where groups start to read, and how far behind they are."),
    ToolOption(
        "offsets", "Describe: the offsets, which is the default.", available_if=("describe",)
    ),
    ToolOption("members", "Describe: the members.", available_if=("describe",)),
    ToolOption("verbose", "Describe: with epochs.", available_if=("describe",)),
    ToolOption("delete", "Delete groups that have no members."),
    ToolOption("delete-offsets", "Delete what is kept for whole topics."),
    ToolOption("reset-offsets", "Set where a group without members starts to read."),
    ToolOption(
        "group", "The group; may be repeated where groups are described or deleted.", "GROUP"
    ),
    ToolOption("all-groups", "All share groups."),
    ToolOption("topic", "A topic, or TOPIC:PARTITION,...; may be repeated.", "TOPIC"),
    ToolOption("all-topics", "Reset: every topic of the group."),
    ToolOption("dry-run", "Reset: only show the new offsets."),
    ToolOption("execute", "Reset: do it."),
    ToolOption("to-datetime", "Reset: to a time, as 2026-01-31T12:00:00.000.", "TIME"),
    ToolOption("to-earliest", "Reset: to the first offset."),
    ToolOption("to-latest", "Reset: to the end."),
    HELP,
    VERSION,
)
_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_SCOPES: Final = ("all-groups", "group")
_TOPIC_SCOPES: Final = ("all-topics", "topic")
_VIEWS: Final = ("members", "offsets", "state")
_SCENARIOS: Final = ("to-datetime", "to-earliest", "to-latest")


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-share-groups, which only release 4 has."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-share-groups, and return the one action they request.

    Errors: OptionsRefused.
    """
    require(given, "bootstrap-server")
    if given.has("describe"):
        _check_describe(given)
    if given.has("delete"):
        _check_delete(given)
    if given.has("delete-offsets") and not (given.has("group") and given.has("topic")):
        raise refused("Option [delete-offsets] takes the following options: [group], [topic]")
    if given.has("reset-offsets"):
        _check_reset(given)
    exclude(given, "group", ("all-groups", "list"))
    exclude(given, "topic", ("list", "describe"))
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        named = ", ".join(f"--{name}" for name in _ACTIONS)
        raise refused(f"Command must include exactly one action: {named}.")
    return actions[0]


def _check_describe(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --describe has groups and at most one view.

    --state must not have a value.
    """
    if not any(map(given.has, _SCOPES)):
        raise refused(f"Option [describe] takes one of these options: {listed_names(_SCOPES)}")
    if sum(map(given.has, _VIEWS)) > 1:
        raise refused(
            f"Option [describe] takes at most one of these options: {listed_names(_VIEWS)}"
        )
    if given.has("state") and given.text("state") is not None:
        raise refused("Option [describe] does not take a value for [state]")


def _check_delete(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --delete has one scope, and no --topic."""
    if not any(map(given.has, _SCOPES)):
        raise refused("Option [delete] takes the options [group] or [all-groups]")
    if all(map(given.has, _SCOPES)):
        raise refused("Option [delete] takes either [group] or [all-groups], not both.")
    if given.has("topic"):
        raise refused("Option [delete] does not take the option: [topic]")


def _check_reset(given: GivenOptions) -> None:
    """Raise OptionsRefused unless --reset-offsets has action, group, topics and one scenario."""
    if given.has("dry-run") and given.has("execute"):
        raise refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.has("dry-run") and not given.has("execute"):
        raise refused("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not given.has("group"):
        raise refused("Option [reset-offsets] takes the option: [group]")
    for needed in (_TOPIC_SCOPES, _SCENARIOS):
        if not any(map(given.has, needed)):
            named = listed_names(needed)
            raise refused(f"Option [reset-offsets] takes one of these options: {named}")
    for scenario in _SCENARIOS:
        exclude(given, scenario, [other for other in _SCENARIOS if other != scenario])


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-share-groups: perform `action`, and print its results; returns the exit code.

    Errors: OptionsRefused; other errors are printed.
    """
    try:
        with connect_client(connect) as client:
            given.number("timeout", 0)
            if action == "list":
                list_share_groups(client, given, out)
            elif action == "describe":
                describe_share_groups(client, given, out, err)
            elif action == "delete":
                delete_share_groups(client, given, out)
            elif action == "delete-offsets":
                delete_share_start_offsets(client, given, out)
            else:
                reset_share_start_offsets(client, given, files, out, err)
    except OptionsRefused:
        raise
    except TerseFailure as error:
        err.write(f"{error}\n")
        return exits.FAILED
    except EngineError as error:
        if isinstance(error, ToolFailure) and error.java_class == ILLEGAL_ARGUMENT:
            raise refused(str(error)) from error
        out.write(f"\nError: Executing share group command failed due to {error}\n")
        err.write(error.trace() if isinstance(error, ToolFailure) else f"{error}\n")
    return exits.OK
