"""Forecast the retention of a log: deleted segments, their times, and the final size. Pure.

| when | what | |---|---| | now | whole segments, by the rules of brokers
(`engine/log/retention.py`) | | later | each segment once its newest record is older than
retention.ms and all before it are deleted | | finally | the smaller of retention.bytes and the
growth within retention.ms, plus a segment: the oldest is deleted as a whole, the newest is being
written |

Only the final size considers records that are still to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.forecast.log_history import LogHistory
from engine.log.log_config import LogConfig
from engine.log.retention import RetentionReason, SegmentFacts, plan_retention
from engine.model import TopicPartition


class LaterDeletion(NamedTuple):
    """Segments that will be deleted together, and when."""

    when_ms: int
    segment_count: int
    size_bytes: int


class RetentionForecast(NamedTuple):
    """The forecast for a log; `steady_bytes` is None if its size is unlimited or unknown."""

    topic_partition: TopicPartition
    size_bytes: int
    segment_count: int
    freed: dict[RetentionReason, int]
    freed_segments: int
    later: tuple[LaterDeletion, ...]
    bytes_per_s: float | None
    steady_bytes: int | None
    is_estimated: bool
    #: Uncertainty of `freed_bytes` in both directions, 0 where segments are known.
    freed_less_bytes: int = 0
    freed_more_bytes: int = 0
    #: Newest timestamp if it is in the future, which delays the deletion from its segment on.
    future_ms: int | None = None

    @property
    def freed_least_bytes(self) -> int:
        """The least that may be deleted now, given the uncertainty of the estimate."""
        return max(0, self.freed_bytes - self.freed_less_bytes)

    @property
    def freed_most_bytes(self) -> int:
        """The most that may be deleted now, given the uncertainty of the estimate."""
        return min(self.size_bytes, self.freed_bytes + self.freed_more_bytes)

    @property
    def freed_bytes(self) -> int:
        """The bytes that are deleted now."""
        return sum(self.freed.values())

    @property
    def left_bytes(self) -> int:
        """The bytes that remain after deleting what is due now."""
        return self.size_bytes - self.freed_bytes


def forecast_retention(log: LogHistory, config: LogConfig, now_ms: int) -> RetentionForecast:
    """Return what retention deletes of a log now and later, and the log's final size."""
    freed: dict[RetentionReason, int] = {}
    at = 0
    for step in plan_retention(log.facts(now_ms), config):
        gone = log.segments[at : at + step.segment_count]
        freed[step.reason] = sum(segment.size_bytes for segment in gone)
        at += step.segment_count
    less_bytes, more_bytes = _estimate_error(log, config, freed, log.segments[at:])
    newest_ms = log.last_timestamp_ms
    return RetentionForecast(
        log.topic_partition,
        log.size_bytes,
        len(log.segments),
        freed,
        at,
        tuple(_later_deletions(log.segments[at:], config)),
        log.bytes_per_s,
        steady_bytes(log.bytes_per_s, config),
        log.is_estimated,
        less_bytes,
        more_bytes,
        newest_ms if newest_ms is not None and newest_ms > now_ms else None,
    )


def _estimate_error(
    log: LogHistory,
    config: LogConfig,
    freed: dict[RetentionReason, int],
    left: Sequence[SegmentFacts],
) -> tuple[int, int]:
    """Return how many bytes less, and how many more, than estimated may be deleted now.

    Only whole segments are deleted, so up to a segment of the due bytes remains, unless the whole
    log is due. With retention.bytes the size of an estimated part adds to the error.
    """
    if not log.is_estimated or not left or not config.is_deleting:
        return 0, 0
    coarse = config.retention_bytes >= 0
    more_bytes = max(segment.size_bytes for segment in left) if coarse else 0
    return (config.segment_bytes if freed else 0), more_bytes


def _later_deletions(segments: Sequence[SegmentFacts], config: LogConfig) -> list[LaterDeletion]:
    """Return when segments will be deleted by `retention.ms`, each not before older ones."""
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
    """Return the largest size that a log reaches under retention, None if it is unlimited."""
    if not config.is_deleting:
        return None
    bounds = []
    if config.retention_bytes >= 0:
        bounds.append(config.retention_bytes + config.segment_bytes)
    if config.retention_ms >= 0 and bytes_per_s is not None:
        rolled = min(config.segment_bytes, bytes_per_s * config.segment_ms / 1000)
        bounds.append(round(bytes_per_s * config.retention_ms / 1000 + rolled))
    return min(bounds, default=None)
