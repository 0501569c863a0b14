"""Planted faults of groups: who has which partition, who may commit, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.broker.coordinator_topic import CoordinatorTopic
from engine.groups import offset_commits
from engine.groups.group_offsets import GroupOffsets
from engine.groups.loaded_groups import LoadedGroups
from engine.groups.offset_commits import OffsetCommits
from engine.groups.ports import GroupRecord
from engine.groups.rebalances import Rebalances
from engine.groups.records import decode_group_record, is_offset
from engine.groups.registry import GroupRegistry


def all_members_get_the_same(patch: pytest.MonkeyPatch) -> None:
    """Give the partitions of one member to all."""
    assign = Rebalances.complete_syncs

    def same(self: Rebalances, group: Any, assignments: dict[str, bytes]) -> None:
        largest = max(assignments.values(), key=len, default=b"")
        assign(self, group, dict.fromkeys(assignments, largest))

    patch.setattr(Rebalances, "complete_syncs", same)


def any_generation_commits(patch: pytest.MonkeyPatch) -> None:
    """Take the commits of members that are not in the group any more."""
    patch.setattr(OffsetCommits, "_check_commit", lambda *_: 0)


def sessions_last_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Keep members that send nothing any more."""
    patch.setattr(Rebalances, "_restart_session_within", lambda *_: None)


def committed_offsets_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    """Forget offsets as a group moves to another coordinator."""
    apply = LoadedGroups.apply_records

    def groups_alone(loaded: Any, entries: Any) -> None:
        groups = [
            record
            for record in entries.records
            if not is_offset(decode_group_record(GroupRecord(record.key, record.value)))
        ]
        apply(loaded, entries._replace(records=groups))

    patch.setattr(LoadedGroups, "apply_records", groups_alone)


def commits_count_once_appended(patch: pytest.MonkeyPatch) -> None:
    """Acknowledge what no other replica has."""
    append = CoordinatorTopic.append

    def unreplicated(
        self: CoordinatorTopic, partition: int, records: Any, settings: Any, waiting: Any
    ) -> Any:
        return append(self, partition, records, settings, waiting._replace(required_acks=1))

    patch.setattr(CoordinatorTopic, "append", unreplicated)


def resigned_groups_are_kept(patch: pytest.MonkeyPatch) -> None:
    """Serve the groups of before, as a partition is led again that others led meanwhile."""

    def keep(self: GroupRegistry, partition: int) -> None:
        self._loads.end(partition)

    patch.setattr(GroupRegistry, "on_resigned", keep)


def undecided_offsets_are_given(patch: pytest.MonkeyPatch) -> None:
    """Let a member go on from what a transaction may be about to replace."""
    patch.setattr(OffsetCommits, "unstable_partitions", lambda *_: set())


def any_generation_commits_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """Take the offsets of a transaction whose member is not in the group any more."""
    patch.setattr(offset_commits, "_check_in_transaction", lambda *_: 0)


def aborted_offsets_count(patch: pytest.MonkeyPatch) -> None:
    """Keep the offsets of a transaction that was aborted."""
    end = GroupOffsets.end_transaction

    def committing(self: GroupOffsets, producer_id: int, *, is_commit: bool) -> None:
        end(self, producer_id, is_commit=True)

    patch.setattr(GroupOffsets, "end_transaction", committing)


def open_commits_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    """Forget the offsets of an open transaction as a group moves to another coordinator."""
    apply = LoadedGroups.apply_records

    def decided_alone(loaded: Any, entries: Any) -> None:
        if entries.open_producer_id < 0:
            apply(loaded, entries)

    patch.setattr(LoadedGroups, "apply_records", decided_alone)
