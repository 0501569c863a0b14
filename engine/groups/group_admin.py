"""The administration of groups: list, describe, delete, expire.

A group without members is removed once its last committed offset has expired. Its offsets expire
`offsets.retention.minutes` after it became empty. If it never had members, or if a stable group no
longer subscribes to the topic, an offset expires that long after its commit.

Source: GRP-18; GroupCoordinator.handleListGroups, handleDescribeGroup, handleDeleteGroups,
GroupMetadataManager.cleanupGroupMetadata, GroupMetadata.removeExpiredOffsets of 3.9.1; KIP-496.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.offset_commits import OffsetCommits
from engine.groups.ports import GroupSettings
from engine.groups.registry import GroupRegistry
from engine.groups.states import GroupState
from engine.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from engine.hash_order import in_concurrent_hash_order
from engine.host.ports import Clock
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP,
)
from engine.model import TopicPartition


class DescribedMember(NamedTuple):
    """One member in DescribeGroups."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """One group in DescribeGroups."""

    error_code: int
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


class ListedGroup(NamedTuple):
    """One group in ListGroups."""

    group_id: str
    protocol_type: str
    state: str


class GroupAdmin:
    """Lists, describes, deletes and expires groups."""

    def __init__(
        self,
        registry: GroupRegistry,
        commits: OffsetCommits,
        settings: GroupSettings,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._commits = commits
        self._settings = settings
        self._clock = clock

    def list_groups(self) -> tuple[int, list[ListedGroup]]:
        """Return an error code and the groups of this coordinator, in Kafka's order (ListGroups).

        While a partition is loading, the code is COORDINATOR_LOAD_IN_PROGRESS and the list partial.
        """
        if self._registry.is_stopped:
            return COORDINATOR_NOT_AVAILABLE, []
        code = COORDINATOR_LOAD_IN_PROGRESS if self._registry.is_loading else 0
        groups = self._registry.groups
        return code, [
            ListedGroup(
                group_id, groups[group_id].protocol_type or "", groups[group_id].state.value
            )
            for group_id in in_concurrent_hash_order(groups, self._registry.held_count)
        ]

    def describe_group(self, group_id: str) -> DescribedGroup:
        """Return a group's state and members, or an error code (DescribeGroups).

        A group that does not exist has the state Dead and no error.
        """
        code = self._registry.check_served(group_id, may_be_empty=True)
        if code:
            return DescribedGroup(code)
        group = self._registry.groups.get(group_id)
        if group is None:
            return DescribedGroup(0, GroupState.DEAD.value)
        # Only a Stable group has complete subscriptions and assignments.
        name = group.protocol_name if group.is_in(GroupState.STABLE) else None
        members = tuple(
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                *member.client,
                b"" if name is None else member.metadata(name),
                b"" if name is None else member.assignment,
            )
            for member in group.members.values()
        )
        return DescribedGroup(0, group.state.value, group.protocol_type or "", name or "", members)

    def delete(self, group_ids: Iterable[str]) -> dict[str, int]:
        """Delete groups without members, and their offsets (DeleteGroups).

        Returns an error code for each group id, 0 for a deleted group.
        """
        return {group_id: self._delete_group(group_id) for group_id in group_ids}

    def _delete_group(self, group_id: str) -> int:
        """Delete a group without members and return 0; otherwise return an error code.

        NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, or the code for a group that is not served here.
        """
        code = self._registry.check_served(group_id, may_be_empty=True)
        if code:
            return code
        group = self._registry.groups.get(group_id)
        if group is None or group.is_in(GroupState.DEAD):
            return GROUP_ID_NOT_FOUND
        if not group.is_in(GroupState.EMPTY):
            return NON_EMPTY_GROUP
        self._commits.end(group)
        return 0

    def expire_groups(self) -> Iterator[None]:
        """Delete expired offsets, and then Empty groups without offsets.

        A generator that handles one group for each step, so that other tasks run in between.
        """
        for group in tuple(self._registry.groups.values()):
            if not group.is_in(GroupState.DEAD):
                self._commits.remove_offsets(group, self._expired_partitions(group))
            yield

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Delete the offsets that any group committed for `topics`, which were deleted."""
        deleted = frozenset(topics)
        for group in tuple(self._registry.groups.values()):
            self._commits.remove_offsets(
                group, [p for p in group.offsets.known() if p.topic in deleted]
            )

    def _expired_partitions(self, group: Group) -> list[TopicPartition]:
        """Return the partitions of a group whose committed offset is older than the retention.

        The retention counts from the commit for a group without members that never had any, and for
        topics to which a Stable group does not subscribe; from the time when the group became Empty
        for an Empty group. In other states nothing expires.
        """

        def since_commit(committed: CommittedOffset) -> int:
            """Return the wall time of the commit."""
            return committed.commit_ms

        def since_empty(committed: CommittedOffset) -> int:
            """Return the wall time when the group became Empty.

            Returns the time of the commit if that is unknown.
            """
            stamp = group.state_timestamp_ms
            return committed.commit_ms if stamp is None else stamp

        may_expire: Callable[[str], bool]
        topics = group.subscribed_topics
        if group.protocol_type is None:
            base_ms, may_expire = since_commit, _always
        elif group.is_in(GroupState.EMPTY):
            base_ms, may_expire = since_empty, _always
        elif (
            group.protocol_type == CONSUMER_PROTOCOL_TYPE
            and group.is_in(GroupState.STABLE)
            and topics is not None
        ):
            base_ms, may_expire = since_commit, partial(_is_not_in, topics)
        else:
            return []
        return group.offsets.expired_partitions(
            self._clock.wall_ms(),
            self._settings.offsets_retention_ms,
            base_ms=base_ms,
            may_expire=may_expire,
        )


def _is_not_in(topics: frozenset[str], topic: str) -> bool:
    """Return True if the group does not subscribe to `topic`, so that its offsets may expire."""
    return topic not in topics


def _always(_topic: str) -> bool:
    """Return True: the offsets of every topic may expire."""
    return True
