"""Settings with which topics stay within a budget of bytes. Pure.

The budget is for all partitions together, one replica of each. Topics get shares in proportion to
their growth if each of them grew, else in proportion to their partitions:

```
segment.bytes    =  the present value, or an eighth of an even share if that is less, since a log
                    is up to a segment larger than what is kept
retention.bytes  =  what the fastest partition has when all have grown for the same time
                    − segment.bytes
retention.ms     =  (topic's bytes − a segment for each partition) ÷ growth of the topic
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.forecast.log_history import LogHistory
from engine.forecast.retention_forecast import forecast_retention
from engine.log.log_config import LogConfig

#: An even share of the budget has at least this number of segments.
_SEGMENTS_A_SHARE: Final = 8
#: retention.ms and retention.bytes are Java's `long`.
_LONG_MAX: Final = (1 << 63) - 1
#: Minimum of advised segment.bytes; Kafka accepts less.
SEGMENT_BYTES_MIN: Final = 1 << 20


class BudgetTooSmall(EngineError):
    """The budget has no room for two segments of the smallest size for each partition."""

    def __init__(self, budget_bytes: int, least_bytes: int, partition_count: int) -> None:
        self.budget_bytes = budget_bytes
        self.least_bytes = least_bytes
        self.hint = f"give {least_bytes} bytes or more, or name fewer topics"
        super().__init__(f"{budget_bytes} bytes are too few for {partition_count} partitions")


class TopicAdvice(NamedTuple):
    """Advised settings for a topic; rates and sizes are for all its partitions together.

    `retention_ms` is None if the growth is unknown. `freed_bytes` are deleted at once;
    `steady_bytes` is the final size.
    """

    topic: str
    partition_count: int
    size_bytes: int
    bytes_per_s: float | None
    budget_bytes: int
    segment_bytes: int
    retention_bytes: int
    retention_ms: int | None
    freed_bytes: int
    steady_bytes: int

    def settings(self) -> dict[str, str]:
        """Return the advised settings by name, as `kctl configs set` accepts them."""
        settings = {
            "segment.bytes": str(self.segment_bytes),
            "retention.bytes": str(self.retention_bytes),
        }
        if self.retention_ms is not None:
            settings["retention.ms"] = str(self.retention_ms)
        return settings


def advise(
    topics: Mapping[str, Sequence[LogHistory]],
    configs: Mapping[str, LogConfig],
    budget_bytes: int,
    now_ms: int,
) -> list[TopicAdvice]:
    """Return advice for each topic, so that all together stay within the budget.

    Raises BudgetTooSmall.
    """
    count = sum(map(len, topics.values()))
    least_bytes = count * 2 * SEGMENT_BYTES_MIN
    if budget_bytes < least_bytes:
        raise BudgetTooSmall(budget_bytes, least_bytes, count)
    shares = _budget_shares(
        {topic: _growth_rates(logs) for topic, logs in topics.items()}, budget_bytes
    )
    return [
        _advise_topic(topic, logs, configs[topic], shares[topic], now_ms)
        for topic, logs in topics.items()
    ]


def _growth_rates(logs: Sequence[LogHistory]) -> list[float]:
    """Return the growth of each log in bytes per second; 0.0 for all if one of them is unknown."""
    rates = [log.bytes_per_s for log in logs]
    if all(rate is not None for rate in rates):
        return [rate or 0.0 for rate in rates]
    return [0.0] * len(logs)


def _budget_shares(weights: Mapping[str, list[float]], budget_bytes: int) -> dict[str, int]:
    """Return each topic's share of the budget, at least two smallest segments per partition.

    `weights` are the growth rates of each topic's partitions.
    """
    counts = {topic: len(listed) for topic, listed in weights.items()}
    least = {topic: count * 2 * SEGMENT_BYTES_MIN for topic, count in counts.items()}
    left = budget_bytes - sum(least.values())
    by_growth = all(any(listed) for listed in weights.values())
    parts = {topic: sum(weights[topic]) if by_growth else counts[topic] for topic in weights}
    total = sum(parts.values()) or 1
    return {topic: least[topic] + int(left * parts[topic] / total) for topic in weights}


def _advise_topic(
    topic: str, logs: Sequence[LogHistory], config: LogConfig, budget_bytes: int, now_ms: int
) -> TopicAdvice:
    """Return the settings with which a topic stays within its budget.

    Without growth there is no advice for `retention.ms`.
    """
    weights = _growth_rates(logs)
    fastest, growth = max(weights), sum(weights)
    # Size of the fastest partition when all hold the growth of the same time.
    share = budget_bytes * fastest / growth if growth else budget_bytes / len(logs)
    even_part = budget_bytes // len(logs) // _SEGMENTS_A_SHARE
    segment_bytes = min(config.segment_bytes, max(SEGMENT_BYTES_MIN, even_part))
    retention_bytes = min(max(0, int(share) - segment_bytes), _LONG_MAX)
    retention_ms = None
    if growth:
        # All partitions keep records for the same time, and each is a segment larger.
        lasting_ms = int((budget_bytes - segment_bytes * len(logs)) * 1000 / growth)
        retention_ms = min(lasting_ms, _LONG_MAX)
    advised = config._replace(
        is_deleting=True,
        segment_bytes=segment_bytes,
        retention_bytes=retention_bytes,
        retention_ms=-1 if retention_ms is None else retention_ms,
    )
    forecasts = [forecast_retention(log, advised, now_ms) for log in logs]
    return TopicAdvice(
        topic,
        len(logs),
        sum(log.size_bytes for log in logs),
        growth or None,
        budget_bytes,
        segment_bytes,
        retention_bytes,
        retention_ms,
        sum(forecast.freed_bytes for forecast in forecasts),
        sum(forecast.steady_bytes or 0 for forecast in forecasts),
    )
