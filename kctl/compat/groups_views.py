"""`kafka-consumer-groups --list` and `--describe`: tables in Kafka's format.

Source: ConsumerGroupCommand.listGroups, describeGroups, collectGroupsOffsets of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.groups import GroupDescription, GroupListing, MemberView
from kctl.compat.group_answers import (
    Waits,
    describe_groups_in_order,
    list_consumer_groups,
)
from kctl.compat.group_rows import (
    MISSING,
    WIDTH_MIN,
    OffsetRow,
    coordinator_text,
    print_state_note,
    request_offset_rows,
    width_of,
)
from kctl.compat.groups_views_4 import print_groups_4
from kctl.compat.java_options import GivenOptions, OptionsRefused
from kctl.compat.java_split import java_split

_UNKNOWN: Final = "Unknown"
_STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
_TYPES: Final = ("Consumer", "Classic")
_OFFSET_HEADER: Final = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
_INSTANCE_WIDTH_MIN: Final = 17
_LISTED_WIDTH_EXTRA: Final = 10


# Listing


def print_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the consumer groups of --list, with types and states if requested.

    Errors: ToolFailure, OptionsRefused.
    """
    shows_type, shows_state = given.has("type"), given.has("state")
    types = _parse_names(given.text("type"), _TYPES, "Invalid types list")
    states = _parse_names(given.text("state"), _STATES, "Invalid state list")
    if not (shows_type or shows_state):
        out.writelines(f"{group.group_id}\n" for group in list_consumer_groups(client))
        return

    def is_wanted(group: GroupListing) -> bool:
        """Return True if a group has one of the requested types and states."""
        return (not types or _type_of(group) in types) and (not states or group.state in states)

    groups = list_consumer_groups(client, Waits.ONCE, is_wanted)
    columns: list[tuple[str, Callable[[GroupListing], str]]] = []
    if shows_type:
        columns.append(("TYPE", _type_of))
    if shows_state:
        columns.append(("STATE", lambda group: group.state or _UNKNOWN))
    longest = max((len(group.group_id) for group in groups), default=0)
    width = max(WIDTH_MIN, longest) + _LISTED_WIDTH_EXTRA
    out.write(_listed("GROUP", width, [name for name, _ in columns]))
    for group in groups:
        out.write(_listed(group.group_id, width, [cell(group) for _, cell in columns]))


def _parse_names(text: str | None, known: Sequence[str], mistake: str) -> set[str]:
    """Parse a list of names in any case into Kafka's spelling, empty for None.

    Errors: OptionsRefused.
    """
    if not text:
        return set()
    by_lower = {name.lower(): name for name in known}
    names = [word.strip().lower() for word in java_split(text, ",")]
    if not all(name in by_lower for name in names):
        valid = ", ".join(known)
        named = "states" if known is _STATES else "types"
        message = f"{mistake} '{text}'. Valid {named} are: {valid}"
        raise OptionsRefused(message, shows_usage=True)
    return {by_lower[name] for name in names}


def _type_of(group: GroupListing) -> str:
    """Return a group's type capitalized, as the tool prints and compares it."""
    return (group.group_type or _UNKNOWN).capitalize()


def _listed(group_id: str, width: int, cells: Iterable[str]) -> str:
    """Return a line of --list: the padded group id, then cells of 20 characters."""
    return " ".join([f"{group_id:<{width}}", *(f"{cell:<20}" for cell in cells)]) + "\n"


# Describing


def describe_selected_groups(
    client: KafkaClient, given: GivenOptions, out: TextIO, err: TextIO
) -> None:
    """Print offsets, members or states of groups (--describe); raises ToolFailure."""
    if given.has("all-groups"):
        group_ids: Sequence[str] = [group.group_id for group in list_consumer_groups(client)]
    else:
        group_ids = given.texts("group")
    groups = describe_groups_in_order(client, group_ids, Waits.ONCE, given.release)
    if given.is_four:
        view = next((name for name in ("members", "state") if given.has(name)), "offsets")
        in_order = [group for _, group in sorted(groups.items())]
        print_groups_4(client, in_order, view, out, err, is_verbose=given.has("verbose"))
    elif given.has("members"):
        for _, group in sorted(groups.items()):
            _print_members(group, out, err, is_verbose=given.has("verbose"))
    elif given.has("state"):
        for _, group in sorted(groups.items()):
            _print_state(client, group, out, err)
    else:
        rows = {group_id: request_offset_rows(client, group) for group_id, group in groups.items()}
        for group_id, group in sorted(groups.items()):
            _print_offsets(group, rows[group_id], out, err)


def _print_offsets(
    group: GroupDescription, rows: Sequence[OffsetRow], out: TextIO, err: TextIO
) -> None:
    """Print the table of offsets in the format of release 3."""
    if not print_state_note(group, len(rows), out, err):
        return
    group_width = width_of(row.group for row in rows)
    topic_width = width_of(row.topic for row in rows)
    consumer_width = width_of(row.consumer_id for row in rows)
    host_width = width_of(row.host for row in rows)
    widths = (group_width, topic_width, 10, 15, 15, 15, consumer_width, host_width, 0)
    for cells in (_OFFSET_HEADER, *(row.cells() for row in rows)):
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        out.write("\n" + " ".join(padded))


def _print_members(group: GroupDescription, out: TextIO, err: TextIO, *, is_verbose: bool) -> None:
    """Print the table of members in the format of release 3.

    The column of instance ids is printed only if a member has one.
    """
    members: Sequence[MemberView] = group.members
    # The header is printed even without rows.
    measured = members if print_state_note(group, len(members), out, err) else ()
    group_width = max(WIDTH_MIN, len(group.group_id)) if measured else WIDTH_MIN
    widths = [
        group_width,
        width_of(member.member_id for member in measured),
        width_of((member.group_instance_id or "" for member in measured), _INSTANCE_WIDTH_MIN),
        width_of(member.client_host for member in measured),
        width_of(member.client_id for member in measured),
        WIDTH_MIN,
    ]
    header = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    table = [header, *(_member_cells(group.group_id, member) for member in members)]
    if not any(member.group_instance_id for member in measured):
        table = [[*cells[:2], *cells[3:]] for cells in table]
        del widths[2]
    last_cells = ["ASSIGNMENT", *(_assignment_text(member) for member in members)]
    out.write("\n")
    for cells, last in zip(table, last_cells, strict=True):
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        out.write(" ".join(padded) + " " + (last if is_verbose else "") + "\n")


def _member_cells(group_id: str, member: MemberView) -> list[str]:
    """Return the cells of a member."""
    return [
        group_id,
        member.member_id,
        member.group_instance_id or "",
        member.client_host,
        member.client_id,
        str(len(member.partitions or ())),
    ]


def _assignment_text(member: MemberView) -> str:
    """Return a member's partitions, by topic in brackets, sorted as texts."""
    by_topic: dict[str, list[str]] = {}
    for partition in member.partitions or ():
        by_topic.setdefault(partition.topic, []).append(str(partition.partition))
    lists = sorted(f"({','.join(sorted(partitions))})" for partitions in by_topic.values())
    return ", ".join(lists) or MISSING


def _print_state(client: KafkaClient, group: GroupDescription, out: TextIO, err: TextIO) -> None:
    """Print the group's state and coordinator in the format of release 3.

    Only a note is printed for a group that does not exist.
    """
    if not print_state_note(group, 1, out, err):
        return
    named = coordinator_text(client, group.group_id)
    width = max(25, len(named))
    header = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    row = (group.group_id, named, group.protocol_name, group.state, str(len(group.members)))
    for cells in (header, row):
        first, second, third, fourth, fifth = cells
        out.write(f"\n{first:<{width}} {second:<25} {third:<20} {fourth:<15} {fifth}")
    out.write("\n")
