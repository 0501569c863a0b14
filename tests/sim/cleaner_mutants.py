"""Planted faults of the cleaner: each loses the last record of a key, or who wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.log.cleaner import log_cleaner, segment_cleaner
from engine.log.cleaner.batch_filter import BatchFilter, CleaningTime
from engine.log.cleaner.cleanable import CleanableLog
from engine.log.cleaner.cleaning import CleaningRun
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.local_log import LocalLog
from engine.log.segment import Segment
from engine.naming import FileState


def cleaned_beyond_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """Clean what is not committed yet, and may be cut."""
    facts = log_cleaner.collect_cleanable_log

    def to_the_end(log: LocalLog, **known: Any) -> CleanableLog:
        return facts(log, **{**known, "high_watermark": log.log_end_offset})

    patch.setattr(log_cleaner, "collect_cleanable_log", to_the_end)


def the_maps_last_value_goes(patch: pytest.MonkeyPatch) -> None:
    """Drop the last value of the key that was read last."""
    get = OffsetMap.get

    def beyond(self: OffsetMap, key: bytes) -> int:
        offset = get(self, key)
        return offset + (offset == self.latest_offset)

    patch.setattr(OffsetMap, "get", beyond)


def tombstones_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let tombstones go with the second cleaning, however early that is."""

    def moment(now_ms: int, _delete_retention_ms: int) -> CleaningTime:
        return CleaningTime(now_ms, 0)

    patch.setattr(segment_cleaner, "CleaningTime", moment)


def last_batches_of_producers_go(patch: pytest.MonkeyPatch) -> None:
    """Keep no empty batch that says where a producer was."""
    patch.setattr(BatchFilter, "_is_last_of_producer", lambda self, batch: False)


def a_cut_log_is_cleaned_on(patch: pytest.MonkeyPatch) -> None:
    """Go on with a map of records that were cut off meanwhile."""
    patch.setattr(CleaningRun, "ensure_unchanged", lambda self: None)


def cleaned_segments_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Put a new segment in the place of durable ones before it is durable itself."""
    sync = Segment.sync

    def hasty(self: Segment, **more: Any) -> None:
        if self.state is not FileState.CLEANED:
            sync(self, **more)

    patch.setattr(Segment, "sync", hasty)
