"""`kafka-share-groups --list` and `--describe`: tables in Kafka's format.

Source: ShareGroupCommand.listGroups, describeGroups of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.share_groups import (
    ShareGroup,
    ShareMember,
    ShareStart,
    describe_share_group,
    request_share_starts,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.compat.group_answers import Waits, failure, groups_of_type
from kctl.compat.group_rows import MISSING, coordinator_text, width_of
from kctl.compat.groups_views_4 import assignment_text, print_table
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import names_in_java_order
from kctl.compat.typed_groups import print_groups_of_type

SHARE_TYPE: Final = "Share"
DESCRIBE_CALL: Final = "describeShareGroups(api=FIND_COORDINATOR)"
STARTS_CALL: Final = "describeShareGroupOffsets(api=FIND_COORDINATOR)"
_STATES: Final = ("Empty", "Stable", "Dead")
_COORDINATOR_WIDTH_MIN: Final = 25


def list_share_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the share groups of --list, with states if requested.

    Errors: ToolFailure, OptionsRefused.
    """
    print_groups_of_type(client, given, SHARE_TYPE, _STATES, out)


def describe_share_groups(
    client: KafkaClient, given: GivenOptions, out: TextIO, err: TextIO
) -> None:
    """Print offsets, members or states of share groups (--describe); raises ToolFailure."""
    group_ids = given.texts("group")
    if given.has("all-groups"):
        group_ids = [group.group_id for group in groups_of_type(client, SHARE_TYPE, Waits.TWICE)]
    groups = {name: described(client, name) for name in names_in_java_order(group_ids)}
    in_order = [group for _, group in sorted(groups.items())]
    is_verbose = given.has("verbose")
    if given.has("members"):
        for group in in_order:
            _print_members(group, out, err, is_verbose=is_verbose)
    elif given.has("state"):
        for group in in_order:
            _print_state(client, group, out, err, is_verbose=is_verbose)
    else:
        starts = {name: _starts_of(client, name) for name in groups}
        for group in in_order:
            _print_offsets(group.group_id, starts[group.group_id], out, is_verbose=is_verbose)


def described(client: KafkaClient, group_id: str) -> ShareGroup:
    """Return a share group's state and members; raises ToolFailure."""
    try:
        return describe_share_group(client, group_id)
    except EngineError as error:
        raise failure(error, DESCRIBE_CALL, Waits.ONCE) from error


def _starts_of(client: KafkaClient, group_id: str) -> dict[TopicPartition, ShareStart | None]:
    """Request a group's start offsets by partition; raises ToolFailure."""
    try:
        return request_share_starts(client, group_id)
    except EngineError as error:
        raise failure(error, STARTS_CALL, Waits.TWICE) from error


def _print_offsets(
    group_id: str,
    starts: Mapping[TopicPartition, ShareStart | None],
    out: TextIO,
    *,
    is_verbose: bool,
) -> None:
    """Print a share group's start offsets as a table; leader epochs only if verbose."""
    if not starts:
        out.write(f"\nShare group '{group_id}' has no offset information.\n")
        return
    heads = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    rows = [
        [group_id, key.topic, str(key.partition), *_start_cells(starts[key])]
        for key in sorted(starts)
    ]
    widths = [width_of([group_id]), width_of(key.topic for key in starts), 10, 13, 13, 0]
    table = [heads, *rows]
    if not is_verbose:
        table = [[*cells[:3], *cells[4:]] for cells in table]
        del widths[3]
    print_table(table, widths, out)


def _start_cells(start: ShareStart | None) -> list[str]:
    """Return the cells of a start offset: leader epoch, offset and lag; `-` for unknown values."""
    if start is None:
        return [MISSING, MISSING, MISSING]
    values = (start.leader_epoch, start.offset, start.lag)
    return [MISSING if value is None else str(value) for value in values]


def _print_state_note(group: ShareGroup, out: TextIO, err: TextIO) -> bool:
    """Print a note on the group's state; return True if it has members."""
    if group.state == "Dead":
        out.write(f"\nError: Share group '{group.group_id}' does not exist.\n")
        return False
    if group.state == "Empty":
        out.flush()
        err.write(f"\nShare group '{group.group_id}' has no active members.\n")
    return bool(group.members)


def _print_members(group: ShareGroup, out: TextIO, err: TextIO, *, is_verbose: bool) -> None:
    """Print a share group's members as a table; their epochs only if verbose."""
    if not _print_state_note(group, out, err):
        return
    heads = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH"]
    members = sorted(group.members)
    table = [
        [*heads, "ASSIGNMENT"],
        *([group.group_id, *_member_cells(member)] for member in members),
    ]
    widths = [
        width_of([group.group_id]),
        width_of(member.member_id for member in members),
        width_of(member.client_host for member in members),
        width_of(member.client_id for member in members),
        *(12, 13, 0),
    ]
    if not is_verbose:
        table = [[*cells[:5], *cells[6:]] for cells in table]
        del widths[5]
    print_table(table, widths, out)


def _member_cells(member: ShareMember) -> list[str]:
    """Return the cells of a member: id, host, client id, partition count, epoch and assignment."""
    place = [member.member_id, member.client_host, member.client_id]
    numbers = [str(len(member.partitions)), str(member.member_epoch)]
    return [*place, *numbers, assignment_text(member.partitions)]


def _print_state(
    client: KafkaClient, group: ShareGroup, out: TextIO, err: TextIO, *, is_verbose: bool
) -> None:
    """Print a share group's state and coordinator as a table; epochs only if verbose."""
    _print_state_note(group, out, err)
    heads = ["GROUP", "COORDINATOR (ID)", "STATE", "GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"]
    named = coordinator_text(client, group.group_id)
    numbers = (group.group_epoch, group.assignment_epoch, len(group.members))
    row = [group.group_id, named, group.state, *map(str, numbers)]
    widths = [width_of([group.group_id]), width_of([named], _COORDINATOR_WIDTH_MIN), 15, 12, 17, 0]
    table = [heads, row]
    if not is_verbose:
        table = [[*cells[:3], *cells[5:]] for cells in table]
        del widths[3:5]
    print_table(table, widths, out)
