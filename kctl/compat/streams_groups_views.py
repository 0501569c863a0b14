"""`kafka-streams-groups --list` and `--describe`: tables in Kafka's format.

Offsets and members of a group without members are not printed.

Source: StreamsGroupCommand.listGroups, describeGroups of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TextIO

from engine.client.blocking import KafkaClient
from engine.client.streams_groups import (
    StreamsGroup,
    StreamsMember,
    TaskAssignment,
    Tasks,
    describe_streams_group,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.compat.group_answers import (
    Waits,
    committed_views,
    end_offsets,
    failure,
    groups_of_type,
    start_offsets,
)
from kctl.compat.group_rows import MISSING, coordinator_text, width_of
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import in_java_order
from kctl.compat.typed_groups import print_groups_of_type

STREAMS_TYPE: Final = "Streams"
DESCRIBE_CALL: Final = "describeStreamsGroups(api=FIND_COORDINATOR)"
_STATES: Final = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")
_COORDINATOR_WIDTH_MIN: Final = 25
_EPOCH_WIDTH: Final = 25


class _Lag(NamedTuple):
    """A group's committed offset and lag in a partition; None for a missing value."""

    offset: int | None
    leader_epoch: int | None
    end_offset: int
    lag: int


def list_streams_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print the streams groups of --list, with states if requested.

    Errors: ToolFailure, OptionsRefused.
    """
    print_groups_of_type(client, given, STREAMS_TYPE, _STATES, out)


def chosen_groups(client: KafkaClient, given: GivenOptions) -> Sequence[str]:
    """Return the ids of the groups of --group, or of all streams groups; raises ToolFailure."""
    if given.has("all-groups"):
        return [group.group_id for group in groups_of_type(client, STREAMS_TYPE, Waits.TWICE)]
    return given.texts("group")


def described(client: KafkaClient, group_id: str, waits: Waits) -> StreamsGroup:
    """Return a streams group's description; raises ToolFailure, also if it has no topology.

    `waits` is how the tool waits for the call, on which the wrapping of errors depends.
    """
    try:
        group = describe_streams_group(client, group_id)
    except EngineError as error:
        raise failure(error, DESCRIBE_CALL, waits) from error
    if group.subtopologies is None:
        cause = "java.lang.IllegalStateException: Topology information is missing"
        raise ToolFailure("java.util.concurrent.ExecutionException", cause, cause)
    return group


def describe_streams_groups(client: KafkaClient, given: GivenOptions, out: TextIO) -> None:
    """Print offsets, members or states of streams groups one by one; raises ToolFailure."""
    for group_id in chosen_groups(client, given):
        group = described(client, group_id, Waits.ONCE)
        if given.has("members"):
            _print_members(group, out, is_verbose=given.has("verbose"))
        elif given.has("state"):
            _print_state(client, group, out, is_verbose=given.has("verbose"))
        else:
            _print_offsets(client, group, out, is_verbose=given.has("verbose"))


def _print_note(group: StreamsGroup, out: TextIO) -> None:
    """Print a note if the group does not exist or has no members."""
    if group.state == "Dead":
        out.write(f"\nError: Streams group '{group.group_id}' does not exist.\n")
    elif group.state == "Empty":
        out.write(f"\nError: Streams group '{group.group_id}' has no active members.\n")


def _print_rows(rows: Sequence[Sequence[str]], widths: Sequence[int], out: TextIO) -> None:
    """Print a line of padded cells for each row of a table."""
    for cells in rows:
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        out.write(" ".join(padded) + "\n")


# Offsets


def _print_offsets(
    client: KafkaClient, group: StreamsGroup, out: TextIO, *, is_verbose: bool
) -> None:
    """Print a streams group's lag by partition; if verbose, also committed and end offset."""
    lags = _request_lags(client, group)
    if group.state == "Dead" or not group.members:
        return
    _print_note(group, out)
    first = [width_of([group.group_id]), width_of(key.topic for key in lags), 10]
    rows = [["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET"]]
    rows[0].append("OFFSET-LAG")
    for key, lag in lags.items():
        numbers = [MISSING if value is None else str(value) for value in lag]
        rows.append([group.group_id, key.topic, str(key.partition), *numbers])
    if is_verbose:
        _print_rows(rows, [*first, 15, 15, 15, 15], out)
    else:
        _print_rows([[*cells[:3], cells[-1]] for cells in rows], [*first, 0], out)


def _request_lags(client: KafkaClient, group: StreamsGroup) -> dict[TopicPartition, _Lag]:
    """Return the lag in each partition that active tasks read, in Java's order.

    Errors: ToolFailure.
    """
    partitions = _partitions_of_tasks(group)
    starts, ends = start_offsets(client, partitions), end_offsets(client, partitions)
    # Java describes the group again; it may have been deleted in between.
    topics = source_topics(described(client, group.group_id, Waits.TWICE), has_repartitions=True)
    commits = {
        key: commit
        for key, commit in committed_views(client, group.group_id).items()
        if key.topic in topics
    }
    lags = {}
    for key in in_java_order(partitions):
        commit = commits.get(key)
        if commit is None:
            lags[key] = _Lag(None, None, ends[key], ends[key] - starts[key])
            continue
        epoch = None if commit.leader_epoch < 0 else commit.leader_epoch
        lags[key] = _Lag(commit.offset, epoch, ends[key], ends[key] - commit.offset)
    return lags


def source_topics(group: StreamsGroup, *, has_repartitions: bool) -> set[str]:
    """Return the topics that a streams group's topology reads as input.

    With `has_repartitions` also its internal repartition topics.
    """
    return {
        topic
        for part in group.subtopologies or ()
        for topic in (
            *part.source_topics,
            *(part.repartition_source_topics if has_repartitions else ()),
        )
    }


def _partitions_of_tasks(group: StreamsGroup) -> list[TopicPartition]:
    """Return the partitions that the active tasks of a group's members read, sorted.

    Errors: ToolFailure.
    """
    topics = {
        part.subtopology_id: (*part.source_topics, *part.repartition_source_topics)
        for part in group.subtopologies or ()
    }
    found: set[TopicPartition] = set()
    for tasks in (tasks for member in group.members for tasks in member.assignment.active):
        if tasks.subtopology_id not in topics:
            message = f"Subtopology {tasks.subtopology_id} not found in group description!"
            raise ToolFailure(ILLEGAL_ARGUMENT, message)
        for topic in topics[tasks.subtopology_id]:
            found.update(TopicPartition(topic, partition) for partition in tasks.partitions)
    return sorted(found)


# Members


def _print_members(group: StreamsGroup, out: TextIO, *, is_verbose: bool) -> None:
    """Print a streams group's members as a table; epochs and targets only if verbose.

    Nothing is printed for a group without members.
    """
    if group.state == "Dead" or not group.members:
        return
    _print_note(group, out)
    group_width = width_of([group.group_id])
    last = [
        width_of(member.process_id for member in group.members),
        width_of(member.client_id for member in group.members),
        0,
    ]
    member_width = width_of(member.member_id for member in group.members)
    if not is_verbose:
        rows = [["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
        rows += [_short_cells(group, member) for member in group.members]
        _print_rows(rows, [group_width, member_width, *last], out)
        return
    # The tool prints no blank before the column of members.
    heads = [
        "GROUP",
        "TARGET-ASSIGNMENT-EPOCH",
        f"{'TOPOLOGY-EPOCH':<15}{'MEMBER':<{member_width}}",
    ]
    heads += ["MEMBER-PROTOCOL", "MEMBER-EPOCH", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]
    rows = [heads, *(_verbose_cells(group, member, member_width) for member in group.members)]
    _print_rows(rows, [group_width, _EPOCH_WIDTH, 0, 15, 15, *last], out)


def _short_cells(group: StreamsGroup, member: StreamsMember) -> list[str]:
    """Return a member's cells: group, member id, process, client id and tasks."""
    place = [member.process_id, member.client_id]
    return [group.group_id, member.member_id, *place, _tasks_text(member.assignment)]


def _verbose_cells(group: StreamsGroup, member: StreamsMember, member_width: int) -> list[str]:
    """Return a member's cells for --verbose, with the member id padded to `member_width`."""
    return [
        group.group_id,
        str(group.assignment_epoch),
        f"{group.topology_epoch:<15}{member.member_id:<{member_width}}",
        "classic" if member.is_classic else "streams",
        str(member.member_epoch),
        member.process_id,
        member.client_id,
        _tasks_text(member.assignment) + _tasks_text(member.target, "TARGET-"),
    ]


def _tasks_text(assignment: TaskAssignment, prefix: str = "") -> str:
    """Return assigned tasks as text: active, standby and warm-up ones.

    A kind without tasks is left out; `prefix` precedes each kind.
    """
    named = (
        ("ACTIVE", assignment.active),
        ("STANDBY", assignment.standby),
        ("WARMUP", assignment.warmup),
    )
    return "".join(
        f"{prefix}{name}: {''.join(map(_task_text, tasks))}" for name, tasks in named if tasks
    )


def _task_text(tasks: Tasks) -> str:
    """Return the tasks of a subtopology in the tool's format: `0:[1,2]; `."""
    return f"{tasks.subtopology_id}:[{','.join(map(str, tasks.partitions))}]; "


def _print_state(
    client: KafkaClient, group: StreamsGroup, out: TextIO, *, is_verbose: bool
) -> None:
    """Print a streams group's state and coordinator as a table; epochs only if verbose."""
    _print_note(group, out)
    heads = ["GROUP", "COORDINATOR (ID)", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
    heads.append("#MEMBERS")
    named = coordinator_text(client, group.group_id, gap=" ")
    numbers = (group.group_epoch, group.assignment_epoch, len(group.members))
    rows = [heads, [group.group_id, named, group.state, *map(str, numbers)]]
    widths = [width_of([group.group_id]), width_of([named], _COORDINATOR_WIDTH_MIN)]
    widths += [25, 15, _EPOCH_WIDTH, 0]
    if not is_verbose:
        rows = [[*cells[:3], cells[-1]] for cells in rows]
        del widths[3:5]
    _print_rows(rows, widths, out)
