"""The effects of partition changes, which the replica manager performs. Source: D1."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.model import TopicPartition


class LogEndMoved(NamedTuple):
    """A leader's log end offset rose, its high watermark did not: follower fetches may complete."""

    topic_partition: TopicPartition
    log_end_offset: int


class HighWatermarkMoved(NamedTuple):
    """The high watermark rose: each delayed operation on the partition may complete (HW-14)."""

    topic_partition: TopicPartition
    high_watermark: int


class LogStartMoved(NamedTuple):
    """The log start offset rose: records below it cannot be read any more."""

    topic_partition: TopicPartition
    log_start_offset: int


class RoleChanged(NamedTuple):
    """The partition's leader or leader epoch changed.

    Delayed operations of the old one complete.
    """

    topic_partition: TopicPartition
    leader_epoch: int


class ProposeIsr(NamedTuple):
    """Request a change of the ISR from the controller, fenced by both epochs (ISR-6).

    `topic_id` is the id of the replica's topic, None if it has none: a topic created later with the
    same name may have the same epochs.
    """

    topic_partition: TopicPartition
    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    topic_id: bytes | None = None


class FetchFrom(NamedTuple):
    """Start to fetch from a leader, after truncation by epochs (PART-3, REPL-2)."""

    topic_partition: TopicPartition
    leader_id: int
    leader_epoch: int


class StopFetching(NamedTuple):
    """Stop fetching: this broker leads the partition (PART-3)."""

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
