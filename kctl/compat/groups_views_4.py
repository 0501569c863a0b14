"""`kafka-consumer-groups --describe` of 4.3.0: tables with epochs, and with line ends.

Source: ConsumerGroupCommand.printOffsets, printMembers, printStates of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.groups import GroupDescription, MemberView
from engine.model import TopicPartition
from kctl.compat.group_rows import (
    MISSING,
    OffsetRow,
    coordinator_text,
    print_state_note,
    request_offset_rows,
    width_of,
)

_ASSIGNMENT_WIDTH_MIN: Final = 20
_INSTANCE_WIDTH_MIN: Final = 17
_COORDINATOR_WIDTH_MIN: Final = 25


def print_groups_4(
    client: KafkaClient,
    groups: Sequence[GroupDescription],
    view: str,
    out: TextIO,
    err: TextIO,
    *,
    is_verbose: bool,
) -> None:
    """Print groups in the format of release 4: `view` is offsets, members or state.

    Errors: ToolFailure.
    """
    if view == "members":
        for group in groups:
            _print_members(group, out, err, is_verbose=is_verbose)
    elif view == "state":
        for group in groups:
            _print_state(client, group, out, err, is_verbose=is_verbose)
    else:
        rows = [
            sorted(request_offset_rows(client, group), key=lambda row: (row.topic, row.partition))
            for group in groups
        ]
        for group, of_group in zip(groups, rows, strict=True):
            _print_offsets(group, of_group, out, err, is_verbose=is_verbose)


def _print_offsets(
    group: GroupDescription,
    rows: Sequence[OffsetRow],
    out: TextIO,
    err: TextIO,
    *,
    is_verbose: bool,
) -> None:
    """Print the table of offsets in the format of release 4; leader epochs only if verbose."""
    if not print_state_note(group, len(rows), out, err):
        return
    header = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET"]
    header += ["LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    table = [header, *(_offset_cells(row) for row in rows)]
    widths = [
        width_of(row.group for row in rows),
        width_of(row.topic for row in rows),
        *(10, 15, 15, 15, 15),
        width_of(row.consumer_id for row in rows),
        width_of(row.host for row in rows),
        0,
    ]
    if not is_verbose:
        table = [[*cells[:3], *cells[4:]] for cells in table]
        del widths[3]
    print_table(table, widths, out)


def _offset_cells(row: OffsetRow) -> list[str]:
    """Return the cells of a row, with the leader epoch of the commit."""
    group, topic, partition, *rest = row.cells()
    epoch = MISSING if row.leader_epoch is None else str(row.leader_epoch)
    return [group, topic, partition, epoch, *rest]


def _print_members(group: GroupDescription, out: TextIO, err: TextIO, *, is_verbose: bool) -> None:
    """Print the table of members in the format of release 4.

    Epochs and assignments are printed only if verbose.
    """
    members = group.members
    # The header is printed even without rows.
    measured = members if print_state_note(group, len(members), out, err) else ()
    header = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    table = [header, *(_member_cells(group.group_id, member) for member in members)]
    widths = [
        width_of([group.group_id] if measured else []),
        width_of(member.member_id for member in measured),
        width_of((member.group_instance_id or "" for member in measured), _INSTANCE_WIDTH_MIN),
        width_of(member.client_host for member in measured),
        width_of(member.client_id for member in measured),
        15,
    ]
    if not any(member.group_instance_id for member in measured):
        table = [[*cells[:2], *cells[3:]] for cells in table]
        del widths[2]
    if is_verbose:
        head = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        more = [head, *(_assignment_cells(group, member) for member in members)]
        table = [[*cells, *added] for cells, added in zip(table, more, strict=True)]
        current, target = ([cells[column] for cells in more[1:]] for column in (1, 3))
        widths += [15, width_of(current, _ASSIGNMENT_WIDTH_MIN)]
        widths += [15, width_of(target, _ASSIGNMENT_WIDTH_MIN)]
    else:
        # The last column is followed by a space.
        table = [[*cells, ""] for cells in table]
        widths.append(0)
    print_table(table, widths, out)


def _member_cells(group_id: str, member: MemberView) -> list[str]:
    """Return the cells of a member."""
    count = len(member.partitions or ())
    instance_id = member.group_instance_id or ""
    host, client_id = member.client_host, member.client_id
    return [group_id, member.member_id, instance_id, host, client_id, str(count)]


def _assignment_cells(group: GroupDescription, member: MemberView) -> list[str]:
    """Return current and target epochs and assignments of a member; `-` if it has none."""
    current = assignment_text(member.partitions or ())
    if member.member_epoch is None:
        return [MISSING, current or MISSING, MISSING, MISSING]
    target = assignment_text(member.target_partitions)
    epochs = (member.member_epoch, group.assignment_epoch)
    return [str(epochs[0]), current or MISSING, str(epochs[1]), target or MISSING]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as text `topic:0,1;other:0`, sorted."""
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return ";".join(f"{topic}:{','.join(map(str, ids))}" for topic, ids in by_topic.items())


def _print_state(
    client: KafkaClient,
    group: GroupDescription,
    out: TextIO,
    err: TextIO,
    *,
    is_verbose: bool,
) -> None:
    """Print the group's state in the format of release 4; its epochs only if verbose."""
    if not print_state_note(group, 1, out, err):
        return
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    named = coordinator_text(client, group.group_id)
    epochs = [
        MISSING if epoch is None else str(epoch)
        for epoch in (group.group_epoch, group.assignment_epoch)
    ]
    row = [group.group_id, named, group.protocol_name or MISSING, group.state, *epochs]
    row.append(str(len(group.members)))
    widths = [width_of([group.group_id]), width_of([named], _COORDINATOR_WIDTH_MIN)]
    widths += [20, 20, 15, 25, 0]
    table = [header, row]
    if not is_verbose:
        table = [[*cells[:4], *cells[6:]] for cells in table]
        del widths[4:6]
    print_table(table, widths, out)


def print_table(table: Iterable[Sequence[str]], widths: Sequence[int], out: TextIO) -> None:
    """Print an empty line, then a line of padded cells for each row."""
    out.write("\n")
    for cells in table:
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        out.write(" ".join(padded) + "\n")
