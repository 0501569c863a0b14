"""The effects that a change of a partition requests from the replica manager. Source: D1."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.model import TopicPartition


class LogEndMoved(NamedTuple):
    """A leader's log has more, its watermark stood still: followers' fetches may be complete."""

    topic_partition: TopicPartition
    log_end_offset: int


class HighWatermarkMoved(NamedTuple):
    """More is committed: everything that waits on the partition may be complete (HW-14)."""

    topic_partition: TopicPartition
    high_watermark: int


class LogStartMoved(NamedTuple):
    """Records below the offset are not readable any more."""

    topic_partition: TopicPartition
    log_start_offset: int


class RoleChanged(NamedTuple):
    """The partition has another leader or epoch: delayed operations on the old one complete."""

    topic_partition: TopicPartition
    leader_epoch: int


class ProposeIsr(NamedTuple):
    """Request a change of the in-sync set from the controller, fenced by both epochs (ISR-6).

    `topic_id` is that of the replica, None if it has none: a topic of the same name that came
    later may have the same epochs.
    """

    topic_partition: TopicPartition
    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    topic_id: bytes | None = None


class FetchFrom(NamedTuple):
    """Fetch from the leader, after truncation by epochs (PART-3, REPL-2)."""

    topic_partition: TopicPartition
    leader_id: int
    leader_epoch: int


class StopFetching(NamedTuple):
    """Fetch no more: this broker leads (PART-3)."""

    topic_partition: TopicPartition


Effect: TypeAlias = (
    LogEndMoved
    | HighWatermarkMoved
    | LogStartMoved
    | RoleChanged
    | ProposeIsr
    | FetchFrom
    | StopFetching
)
