"""Describe streams groups: their members with tasks, and their topology.

Offsets and deletions of such a group are those of any group: `groups`, `group_admin`.

Source: KIP-1071 as in 4.3.0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.described_groups import request_description
from engine.wire.schema import Release
from engine.wire.structs import Message

STREAMS: Final = "streams"
_RELEASE: Final[Release] = "4.3.0"


class Tasks(NamedTuple):
    """Tasks of one subtopology, by their partitions."""

    subtopology_id: str
    partitions: tuple[int, ...]


class TaskAssignment(NamedTuple):
    """The tasks of a member, in the order of the response."""

    active: tuple[Tasks, ...]
    standby: tuple[Tasks, ...]
    warmup: tuple[Tasks, ...]


class StreamsMember(NamedTuple):
    """A member of a streams group, one thread of a process."""

    member_id: str
    member_epoch: int
    client_id: str
    process_id: str
    is_classic: bool
    assignment: TaskAssignment
    target: TaskAssignment


class Subtopology(NamedTuple):
    """A part of the topology, and the topics that it reads and keeps its state in."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]


class StreamsGroup(NamedTuple):
    """A streams group; `subtopologies` is None if the broker does not know its topology."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[Subtopology, ...] | None
    members: tuple[StreamsMember, ...]


def describe_streams_group(client: KafkaClient, group_id: str) -> StreamsGroup:
    """Return state, epochs, topology and members of a streams group.

    Raises ApiError GROUP_ID_NOT_FOUND, also for a group of another type, and NoCommonVersion.
    """
    row = request_description(client, "StreamsGroupDescribe", group_id, _RELEASE)
    topology = row.topology
    return StreamsGroup(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        -1 if topology is None else topology.epoch,
        None if topology is None else _subtopologies(topology),
        tuple(_group_member(member) for member in row.members),
    )


def _subtopologies(topology: Message) -> tuple[Subtopology, ...]:
    """Return the subtopologies of a topology with their topics; empty if the field is null."""
    return tuple(
        Subtopology(
            part.subtopology_id,
            tuple(part.source_topics),
            tuple(topic.name for topic in part.repartition_source_topics),
            tuple(topic.name for topic in part.state_changelog_topics),
        )
        for part in topology.subtopologies or ()
    )


def _group_member(row: Message) -> StreamsMember:
    """Return a member of a streams group with its present and target tasks."""
    return StreamsMember(
        row.member_id,
        row.member_epoch,
        row.client_id,
        row.process_id,
        row.is_classic,
        _task_assignment(row.assignment),
        _task_assignment(row.target_assignment),
    )


def _task_assignment(row: Message) -> TaskAssignment:
    """Return the active, standby and warm-up tasks of a member, each by subtopology."""
    return TaskAssignment(
        *(
            tuple(Tasks(tasks.subtopology_id, tuple(tasks.partitions)) for tasks in kind)
            for kind in (row.active_tasks, row.standby_tasks, row.warmup_tasks)
        )
    )
