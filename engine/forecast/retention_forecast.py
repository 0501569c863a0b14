"""What retention takes from a log, when, and how large the log becomes. Pure.

| | |
|---|---|
| now | whole segments, by the rules that brokers go by (`engine/log/retention.py`) |
| later | each segment once its newest record is older than retention.ms, and all before it have gone |
| in the end | the least of what grows within retention.ms and of retention.bytes, and a segment more: the oldest goes as a whole, the newest is being written |

What later records bring counts for the end alone.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.forecast.log_history import LogHistory
from engine.log.log_config import LogConfig
from engine.log.retention import RetentionReason, SegmentFacts, plan_retention
from engine.model import TopicPartition


class LaterDeletion(NamedTuple):
    """The oldest segments that are left by then, and when they go."""

    when_ms: int
    segment_count: int
    size_bytes: int


class RetentionForecast(NamedTuple):
    """One log under some settings. `steady_bytes` None: nothing bounds it, or nobody knows."""

    topic_partition: TopicPartition
    size_bytes: int
    segment_count: int
    freed: dict[RetentionReason, int]
    freed_segments: int
    later: tuple[LaterDeletion, ...]
    bytes_per_s: float | None
    steady_bytes: int | None
    is_estimated: bool

    @property
    def freed_bytes(self) -> int:
        """Return what goes now."""
        return sum(self.freed.values())

    @property
    def left_bytes(self) -> int:
        """Return what stays until later."""
        return self.size_bytes - self.freed_bytes


def forecast_retention(log: LogHistory, config: LogConfig, now_ms: int) -> RetentionForecast:
    """Return what would become of a log."""
    freed: dict[RetentionReason, int] = {}
    at = 0
    for step in plan_retention(log.facts(now_ms), config):
        gone = log.segments[at : at + step.segment_count]
        freed[step.reason] = sum(segment.size_bytes for segment in gone)
        at += step.segment_count
    return RetentionForecast(
        log.topic_partition,
        log.size_bytes,
        len(log.segments),
        freed,
        at,
        tuple(_later(log.segments[at:], config)),
        log.bytes_per_s,
        steady_bytes(log.bytes_per_s, config),
        log.is_estimated,
    )


def _later(segments: Sequence[SegmentFacts], config: LogConfig) -> list[LaterDeletion]:
    later: list[LaterDeletion] = []
    if not config.is_deleting or config.retention_ms < 0:
        return later
    for segment in segments:
        if not segment.size_bytes:
            break
        when_ms = segment.largest_timestamp_ms + config.retention_ms + 1
        if later and when_ms <= later[-1].when_ms:
            last = later.pop()
            count, size_bytes = last.segment_count + 1, last.size_bytes + segment.size_bytes
            later.append(LaterDeletion(last.when_ms, count, size_bytes))
        else:
            later.append(LaterDeletion(when_ms, 1, segment.size_bytes))
    return later


def steady_bytes(bytes_per_s: float | None, config: LogConfig) -> int | None:
    """Return the most that a log holds once retention keeps up with what comes."""
    if not config.is_deleting:
        return None
    bounds = []
    if config.retention_bytes >= 0:
        bounds.append(config.retention_bytes + config.segment_bytes)
    if config.retention_ms >= 0 and bytes_per_s is not None:
        rolled = min(config.segment_bytes, bytes_per_s * config.segment_ms / 1000)
        bounds.append(round(bytes_per_s * config.retention_ms / 1000 + rolled))
    return min(bounds, default=None)
