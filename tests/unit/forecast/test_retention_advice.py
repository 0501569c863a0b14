"""Settings by which topics stay within a budget."""

from __future__ import annotations

from random import Random

import pytest

from engine.forecast.log_history import LogHistory
from engine.forecast.retention_advice import SEGMENT_BYTES_MIN, BudgetTooSmall, advise
from engine.forecast.retention_forecast import steady_bytes
from engine.log.log_config import LogConfig
from engine.log.retention import SegmentFacts
from engine.model import TopicPartition

DAY_MS = 86_400_000
MIB = 1 << 20


def grown(topic: str, partition: int, size_bytes: int, first_ms: int | None = 0) -> LogHistory:
    """Return a log that grew for a day."""
    segment = SegmentFacts(0, 10, size_bytes, DAY_MS, True)
    return LogHistory(TopicPartition(topic, partition), [segment], 0, 10, first_ms)


def test_topics_share_the_budget_by_growth() -> None:
    topics = {"a": [grown("a", 0, 300 * MIB)], "b": [grown("b", 0, 100 * MIB)]}
    configs = dict.fromkeys(topics, LogConfig())
    first, second = advise(topics, configs, 404 * MIB, DAY_MS)
    assert (302 * MIB, 102 * MIB) == (first.budget_bytes, second.budget_bytes)
    assert first.settings().keys() == {"segment.bytes", "retention.bytes", "retention.ms"}


def test_where_growth_is_not_known_it_is_shared_evenly_and_by_bytes_alone() -> None:
    topics = {
        "a": [grown("a", number, MIB, None) for number in range(3)],
        "b": [grown("b", 0, 100 * MIB)],
    }
    first, second = advise(topics, dict.fromkeys(topics, LogConfig()), 80 * MIB, DAY_MS)
    assert (60 * MIB, 20 * MIB) == (first.budget_bytes, second.budget_bytes)
    assert first.retention_ms is None
    assert "retention.ms" not in first.settings()
    assert first.steady_bytes <= 60 * MIB


def test_segments_become_smaller_but_never_larger() -> None:
    topics = {"a": [grown("a", 0, MIB)]}
    (small,) = advise(topics, {"a": LogConfig()}, 16 * MIB, DAY_MS)
    assert 2 * MIB == small.segment_bytes
    (least,) = advise(topics, {"a": LogConfig()}, 2 * MIB, DAY_MS)
    assert SEGMENT_BYTES_MIN == least.segment_bytes
    (as_it_is,) = advise(topics, {"a": LogConfig(segment_bytes=5000)}, 16 * MIB, DAY_MS)
    assert 5000 == as_it_is.segment_bytes


def test_too_small_a_budget_is_refused_with_the_least_that_does() -> None:
    topics = {"a": [grown("a", number, MIB) for number in range(4)]}
    with pytest.raises(BudgetTooSmall) as error:
        advise(topics, {"a": LogConfig()}, 8 * MIB - 1, DAY_MS)
    assert 8 * MIB == error.value.least_bytes
    assert advise(topics, {"a": LogConfig()}, 8 * MIB, DAY_MS)


@pytest.mark.parametrize("seed", range(40))
def test_topics_of_any_shape_stay_within_the_budget(seed: int) -> None:
    random = Random(seed)
    topics = {}
    for number in range(random.randint(1, 5)):
        topic = f"t{number}"
        first_ms = None if random.random() < 0.1 else 0
        topics[topic] = [
            grown(topic, p, int(random.lognormvariate(16, 3)), first_ms)
            for p in range(random.randint(1, 8))
        ]
    configs = {
        topic: LogConfig(segment_bytes=random.choice((1 << 30, 1 << 22))) for topic in topics
    }
    count = sum(map(len, topics.values()))
    budget = count * 2 * MIB + random.randint(0, 1 << 33)
    advice = advise(topics, configs, budget, DAY_MS)
    assert sum(row.budget_bytes for row in advice) <= budget
    for row in advice:
        advised = configs[row.topic]._replace(
            segment_bytes=row.segment_bytes,
            retention_bytes=row.retention_bytes,
            retention_ms=-1 if row.retention_ms is None else row.retention_ms,
        )
        ends = [steady_bytes(log.bytes_per_s, advised) for log in topics[row.topic]]
        assert sum(end or 0 for end in ends) <= row.budget_bytes + count
        assert row.steady_bytes == sum(end or 0 for end in ends)
