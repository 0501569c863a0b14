"""What a log waits for until a cleaner takes it."""

from __future__ import annotations

import pytest

from engine.log.cleaner.cleanable import CleanableLog, CleanableSegment, find_cleanable_range
from engine.log.cleaner.compaction_wait import CompactionWait, compaction_wait
from engine.log.log_config import LogConfig
from engine.model import TopicPartition

NOW_MS = 1_000_000
CONFIG = LogConfig(is_compacted=True)


def waits(
    *, config: LogConfig = CONFIG, clean_to: int | None = None, stable: int = 40, end: int = 40
) -> CompactionWait | None:
    """Return what a log of four segments of ten records waits for; the last is active."""
    log = CleanableLog(
        TopicPartition("t", 0),
        [CleanableSegment(base, 100) for base in (0, 10, 20, 30)],
        0,
        end,
        stable,
        clean_to,
        lambda base: NOW_MS - 1000 + base,
        lambda base: NOW_MS - 1000 + base,
    )
    return compaction_wait(log, find_cleanable_range(log, config, NOW_MS), config, NOW_MS)


def test_a_log_that_is_due_or_clean_waits_for_nothing() -> None:
    assert waits() is None
    assert waits(clean_to=40) is None


@pytest.mark.parametrize(
    ("expected", "clean_to", "stable", "lag_ms"),
    [
        (CompactionWait.DIRTY_RATIO, 20, 40, 0),
        (CompactionWait.ACTIVE_SEGMENT, 30, 40, 0),
        (CompactionWait.ACTIVE_SEGMENT, 35, 40, 0),
        (CompactionWait.STABLE, 10, 15, 0),
        (CompactionWait.LAG, None, 40, 5000),
        # Where both hold it, the lag alone would not let it go.
        (CompactionWait.STABLE, 10, 15, 5000),
    ],
)
def test_a_dirty_log_waits(
    expected: CompactionWait, clean_to: int | None, stable: int, lag_ms: int
) -> None:
    config = CONFIG._replace(min_compaction_lag_ms=lag_ms)
    assert expected is waits(config=config, clean_to=clean_to, stable=stable)


def test_what_is_overdue_waits_for_nothing_but_its_roll() -> None:
    config = CONFIG._replace(max_compaction_lag_ms=100, min_cleanable_dirty_ratio=1.0)
    assert waits(config=config, clean_to=20) is None
    assert CompactionWait.ACTIVE_SEGMENT is waits(config=config, clean_to=30)
