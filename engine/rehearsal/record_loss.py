"""Acknowledged records lost in a rehearsal, found by offsets. Pure.

No record of the copy is deleted: its topics have no retention, and each record its own key. So an
acknowledged record outside the log of its partition is lost, at the end (truncated) or at the start
(a replica with a later start became the leader). Sizes in bytes tell nothing: they differ between
replicas. A partition that cannot be read counts as complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition


class OffsetRange(NamedTuple):
    """The offsets of a log; `end` is exclusive."""

    start: int
    end: int


class LostRecords(NamedTuple):
    """Lost acknowledged records of a partition; `end_offset` is exclusive."""

    partition: TopicPartition
    first_offset: int
    end_offset: int


def find_lost_records(
    acknowledged: Mapping[TopicPartition, OffsetRange], found: Mapping[TopicPartition, OffsetRange]
) -> list[LostRecords]:
    """Return the acknowledged offsets that are missing in the logs, by partition.

    A partition that is not in `found` could not be read and is left out.
    """
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
    """Return True if a log was read and contains all acknowledged offsets."""
    return found is not None and found.start <= acknowledged.start and acknowledged.end <= found.end
