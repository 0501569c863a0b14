"""`kafka-groups`: lists groups of all types. A tool of 4.3.0 for any `--kafka-version`.

Source: GroupsCommand of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.groups import CONSUMER, GroupListing, list_groups
from engine.host.ports import Files
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT, admin_call
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    exclude,
    refused,
)
from kctl.compat.java_order import names_in_java_order
from kctl.compat.releases import Release

SUMMARY = "Lists groups of all types."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("list", "List the groups."),
    ToolOption("consumer", "Only groups of consumers, of either protocol."),
    ToolOption("share", "Only share groups."),
    ToolOption("streams", "Only groups of Kafka Streams."),
    ToolOption("group-type", "Only classic, consumer, share or streams groups.", "TYPE"),
    ToolOption("protocol", "Only groups of this protocol type.", "NAME"),
    HELP,
    VERSION,
)
_TYPES: Final = ("classic", "consumer", "share", "streams")
_WIDTH_MIN: Final = 20


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-groups, which only release 4 has."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused or ToolFailure for contradictory or missing options of kafka-groups."""
    if not given.has("bootstrap-server"):
        raise refused("Missing required option(s) [bootstrap-server]")
    if not given.has("list"):
        raise refused("Command must include exactly one action: --list.")
    exclude(given, "consumer", ("group-type", "protocol", "share", "streams"))
    exclude(given, "share", ("consumer", "group-type", "protocol", "streams"))
    exclude(given, "streams", ("consumer", "group-type", "protocol", "share"))
    if given.has("group-type") and given.needed("group-type").lower() not in _TYPES:
        raise ToolFailure(ILLEGAL_ARGUMENT, "--group-type must be a valid group type.")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-groups: print the selected groups of all types; returns the exit code.

    `wanted` and `files` are unused: the functions of all tools have these parameters.
    """
    del wanted, files
    try:
        with connect() as client:
            groups = [group for group in _list_all_groups(client) if _is_wanted(group, given)]
    except OptionsRefused:
        raise
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    width = max([_WIDTH_MIN, *(len(group.group_id) for group in groups)])
    rows = [(g.group_id, (g.group_type or "Unknown").capitalize(), g.protocol_type) for g in groups]
    out.write(f"{'GROUP':<{width}} {'TYPE':<20} {'PROTOCOL':<20}\n")
    for group_id, group_type, protocol in rows:
        # In Java's output the rows end with a blank, but not the heading.
        out.write(f"{group_id:<{width}} {group_type:<20} {protocol:<20} \n")
    return exits.OK


def _list_all_groups(client: KafkaClient) -> list[GroupListing]:
    """Return the groups of all brokers in the order of Java's HashMap; raises the first error."""
    with admin_call("listGroups"):
        groups, failures = list_groups(client)
        for failure in failures.values():
            raise failure
    by_id = {group.group_id: group for group in groups}
    return [by_id[group_id] for group_id in names_in_java_order(by_id)]


def _is_wanted(group: GroupListing, given: GivenOptions) -> bool:
    """Return True if the options of kafka-groups select a group by type and protocol.

    --consumer also selects classic groups with the protocol of consumers, or none.
    """
    group_type = (group.group_type or "").lower()
    if given.has("consumer"):
        is_classic_consumer = group_type == "classic" and group.protocol_type in (CONSUMER, "")
        return group_type == "consumer" or is_classic_consumer
    if given.has("share") or given.has("streams"):
        return group_type == ("share" if given.has("share") else "streams")
    if given.has("group-type") and group_type != given.needed("group-type").lower():
        return False
    return not given.has("protocol") or group.protocol_type == given.needed("protocol")
