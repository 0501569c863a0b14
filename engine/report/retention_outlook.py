"""What retention will delete of each topic, and when. Pure.

The forecasts are those of `engine/forecast`; for clusters on other machines they are estimates, by
offsets at points in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from engine.forecast.retention_forecast import RetentionForecast
from engine.model import TopicPartition

_DAY_S: Final = 86_400


class TopicRetention(NamedTuple):
    """The logs of a topic under its settings; of each partition only the leader's log counts.

    `retention_ms` and `retention_bytes` are -1 for no limit. `bytes_per_day` and `steady_bytes` are
    None unless they are known of all partitions; `next_at_ms` is None if no deletion is foreseen.
    """

    topic: str
    retention_ms: int
    retention_bytes: int
    size_bytes: int
    due_bytes: int
    next_at_ms: int | None
    next_bytes: int | None
    bytes_per_day: int | None
    steady_bytes: int | None


class Deletion(NamedTuple):
    """Bytes of a topic that are deleted within the hour that starts at `at_ms`."""

    at_ms: int
    topic: str
    freed_bytes: int


class RetentionBounds(NamedTuple):
    """The settings of a topic with which its forecasts were made."""

    retention_ms: int
    retention_bytes: int


Forecasts = Mapping[TopicPartition, RetentionForecast]
_HOUR_MS: Final = 3_600_000


def topic_retentions(
    forecasts: Forecasts, bounds: Mapping[str, RetentionBounds]
) -> list[TopicRetention]:
    """Return the retention forecast of each topic that has forecasts, by name.

    `bounds` are the settings retention.ms and retention.bytes by topic.
    """
    by_topic: dict[str, list[RetentionForecast]] = {}
    for key in sorted(forecasts):
        by_topic.setdefault(key.topic, []).append(forecasts[key])
    return [_topic_retention(name, rows, bounds[name]) for name, rows in by_topic.items()]


def _topic_retention(
    name: str, forecasts: list[RetentionForecast], bounds: RetentionBounds
) -> TopicRetention:
    """Return the sum of the forecasts of a topic's partitions, and its next deletion.

    Bytes per day and final size are None unless all partitions have one.
    """
    upcoming = [later for forecast in forecasts for later in forecast.later]
    first = min(upcoming, key=lambda later: later.when_ms, default=None)
    rates = [forecast.bytes_per_s for forecast in forecasts]
    known = [rate for rate in rates if rate is not None]
    steady = [forecast.steady_bytes for forecast in forecasts]
    bounded = [size for size in steady if size is not None]
    return TopicRetention(
        name,
        bounds.retention_ms,
        bounds.retention_bytes,
        sum(forecast.size_bytes for forecast in forecasts),
        sum(forecast.freed_bytes for forecast in forecasts),
        None if first is None else first.when_ms,
        None if first is None else first.size_bytes,
        round(sum(known) * _DAY_S) if len(known) == len(rates) else None,
        sum(bounded) if len(bounded) == len(steady) else None,
    )


def deletions(forecasts: Iterable[RetentionForecast], now_ms: int) -> list[Deletion]:
    """Return the bytes that retention will delete, by hour and topic, sorted by both.

    Overdue deletions count as now. Times are in milliseconds since the epoch.
    """
    sums: dict[tuple[int, str], int] = {}
    for forecast in forecasts:
        topic = forecast.topic_partition.topic
        due = [(now_ms, forecast.freed_bytes)] if forecast.freed_bytes else []
        for at_ms, size_bytes in [*due, *((one.when_ms, one.size_bytes) for one in forecast.later)]:
            hour_ms = max(at_ms, now_ms) // _HOUR_MS * _HOUR_MS
            sums[hour_ms, topic] = sums.get((hour_ms, topic), 0) + size_bytes
    return [Deletion(at_ms, topic, size) for (at_ms, topic), size in sorted(sums.items())]
