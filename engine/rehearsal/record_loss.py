"""Acknowledged records lost in a rehearsal, found by offsets. Pure.

The copy keeps its records for good: it has no retention of its own and a key for each record. So an
acknowledged record outside the log of its partition is lost, at the end (truncated) or at its start
(a replica that began later became the leader). Bytes say nothing: replicas of one partition differ
in them. A partition that cannot be read may hold everything: it is no loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition


class OffsetRange(NamedTuple):
    """Offsets of a log: `end` is exclusive."""

    start: int
    end: int


class LostRecords(NamedTuple):
    """Acknowledged records of a partition that are gone: `end_offset` is exclusive."""

    partition: TopicPartition
    first_offset: int
    end_offset: int


def lost_records(
    acknowledged: Mapping[TopicPartition, OffsetRange], found: Mapping[TopicPartition, OffsetRange]
) -> list[LostRecords]:
    """Return the acknowledged offsets that were not found; `found` has the partitions read."""
    lost = []
    for key, (start, end) in acknowledged.items():
        log = found.get(key)
        if log is None:
            continue
        before_log = LostRecords(key, start, min(end, log.start))
        after_log = LostRecords(key, max(start, log.end, before_log.end_offset), end)
        lost += [gone for gone in (before_log, after_log) if gone.first_offset < gone.end_offset]
    return lost


def is_whole(acknowledged: OffsetRange, found: OffsetRange | None) -> bool:
    """Return True if a log that was read has all that was acknowledged."""
    return found is not None and found.start <= acknowledged.start and acknowledged.end <= found.end
