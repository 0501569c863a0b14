"""Planted faults of reads and of deletion: records that are not given, or gone too early."""

from __future__ import annotations

from typing import Any

import pytest

from engine.log import log_deletion
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.log_types import FetchSlice
from engine.log.retention import LogFacts, RetentionReason, RetentionStep
from engine.records.batch import BatchView
from engine.replication import partition as partitions
from engine.replication.partition import Partition


def first_batches_of_fetches_go(patch: pytest.MonkeyPatch) -> None:
    """Leave the first of several batches out of a response to a consumer."""
    read, fast = Partition.read, partitions.read_slice_fast

    def shorter(content: bytes) -> bytes:
        size = BatchView(memoryview(content), 0).size_bytes if len(content) > 61 else len(content)
        return content[size:] if len(content) > size else content

    def skipping(self: Partition, params: Any, *arguments: Any, **more: Any) -> Any:
        found = read(self, params, *arguments, **more)
        if params.replica_id >= 0 or found.records is None or not found.records.size_bytes:
            return found
        content = shorter(found.records.read())
        found.records.release()
        return found._replace(records=FetchSlice(found.records.start, content))

    def skipping_fast(*arguments: Any) -> Any:
        found = fast(*arguments)
        return shorter(found) if isinstance(found, bytes) else found

    patch.setattr(Partition, "read", skipping)
    patch.setattr(partitions, "read_slice_fast", skipping_fast)


def _too_early(patch: pytest.MonkeyPatch, changed: dict[str, int]) -> None:
    rule = log_deletion.plan_retention

    def eager(log: LogFacts, config: LogConfig) -> list[RetentionStep]:
        earlier = {key: value for key, value in changed.items() if getattr(config, key) > 0}
        return rule(log, config._replace(**earlier))

    patch.setattr(log_deletion, "plan_retention", eager)


def retention_by_time_is_early(patch: pytest.MonkeyPatch) -> None:
    """Delete segments by time when a third of their time is over."""
    _too_early(patch, {"retention_ms": 1_000})


def retention_by_size_takes_more(patch: pytest.MonkeyPatch) -> None:
    """Delete by size until less is left than is to stay."""
    _too_early(patch, {"retention_bytes": 1_024})


def retention_takes_one_more(patch: pytest.MonkeyPatch) -> None:
    """Delete the segment behind the last one that may go."""
    rule = log_deletion.plan_retention

    def eager(log: LogFacts, config: LogConfig) -> list[RetentionStep]:
        steps = rule(log, config)
        count = sum(step.segment_count for step in steps)
        has_more = count + 1 < len(log.segments)
        if steps and has_more and log.segments[count].end_offset <= log.high_watermark:
            steps.append(RetentionStep(RetentionReason.SIZE, 1))
        return steps

    patch.setattr(log_deletion, "plan_retention", eager)


def oldest_segments_go_unasked(patch: pytest.MonkeyPatch) -> None:
    """Delete the oldest of three segments, retention not asked."""
    delete = LocalLog.delete_old_segments

    def hasty(self: LocalLog, high_watermark: int, now_ms: int) -> Any:
        if len(self.segments) > 2:
            self.delete_segments_before(self.segments.bases[1], high_watermark, now_ms)
        return delete(self, high_watermark, now_ms)

    patch.setattr(LocalLog, "delete_old_segments", hasty)
