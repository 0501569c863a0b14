"""Which part of a log may be cleaned, and which log comes first."""

from __future__ import annotations

import pytest

from engine.log.cleaner.cleanable import (
    CheckpointFault,
    CleanableLog,
    CleanableSegment,
    dirtiest_range,
    find_cleanable_range,
    find_first_dirty_offset,
)
from engine.log.log_config import LogConfig
from engine.model import TopicPartition

KEY = TopicPartition("t", 0)
NOW_MS = 1_000_000
CONFIG = LogConfig(is_compacted=True, min_cleanable_dirty_ratio=0.5)
#: Largest time of each segment by its base, 100 bytes each.
TIMES = {0: 100, 10: 200, 20: 300, 30: 400}


def log_of(**changes: object) -> CleanableLog:
    log = CleanableLog(
        KEY,
        [CleanableSegment(base, 100) for base in TIMES],
        log_start_offset=0,
        log_end_offset=35,
        last_stable_offset=35,
        checkpoint_offset=None,
        largest_timestamp_ms=TIMES.__getitem__,
        first_timestamp_ms=lambda base: TIMES[base] - 50,
    )
    return log._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (None, (5, None)),
        (4, (5, CheckpointFault.BELOW_START)),
        (5, (5, None)),
        (20, (20, None)),
        (35, (35, None)),
        (36, (5, CheckpointFault.ABOVE_END)),
    ],
)
def test_the_checkpoint_counts_within_the_log(
    checkpoint: int | None, expected: tuple[int, CheckpointFault | None]
) -> None:
    assert expected == find_first_dirty_offset(
        log_of(checkpoint_offset=checkpoint, log_start_offset=5)
    )


def test_all_but_the_active_segment_may_be_cleaned() -> None:
    found = find_cleanable_range(log_of(), CONFIG, NOW_MS)
    assert (0, 30, 0, 300) == (
        found.first_dirty_offset,
        found.first_uncleanable_offset,
        found.clean_bytes,
        found.cleanable_bytes,
    )


@pytest.mark.parametrize(("stable", "bound"), [(9, 0), (10, 10), (19, 10), (20, 20), (31, 30)])
def test_a_segment_with_the_last_stable_offset_stays(stable: int, bound: int) -> None:
    found = find_cleanable_range(log_of(last_stable_offset=stable), CONFIG, NOW_MS)
    assert bound == found.first_uncleanable_offset


@pytest.mark.parametrize(("lag", "bound"), [(0, 30), (700, 30), (701, 20), (801, 10), (901, 0)])
def test_segments_younger_than_the_lag_stay(lag: int, bound: int) -> None:
    config = CONFIG._replace(min_compaction_lag_ms=lag)
    assert bound == find_cleanable_range(log_of(), config, 1000).first_uncleanable_offset


def test_only_dirty_segments_can_be_too_young() -> None:
    # Segment 10 is younger than the lag, but it is clean.
    config = CONFIG._replace(min_compaction_lag_ms=850)
    found = find_cleanable_range(log_of(checkpoint_offset=20), config, 1000)
    assert 20 == found.first_uncleanable_offset
    assert 0 == found.cleanable_bytes


def test_a_log_is_clean_up_to_its_checkpoint() -> None:
    found = find_cleanable_range(log_of(checkpoint_offset=20), CONFIG, NOW_MS)
    assert (200, 100) == (found.clean_bytes, found.cleanable_bytes)
    assert 1 / 3 == found.dirty_ratio
    assert not found.may_be_cleaned(CONFIG)
    assert found.may_be_cleaned(CONFIG._replace(min_cleanable_dirty_ratio=0.33))


def test_the_ratio_has_to_be_above_the_setting() -> None:
    half = log_of(segments=[CleanableSegment(base, 100) for base in (0, 10, 20)])
    found = find_cleanable_range(half._replace(checkpoint_offset=10), CONFIG, NOW_MS)
    assert 0.5 == found.dirty_ratio
    assert not found.may_be_cleaned(CONFIG)


@pytest.mark.parametrize(("now_ms", "overdue_ms"), [(350, 0), (351, 1), (400, 50)])
def test_records_beyond_the_longest_lag_have_to_be_cleaned(now_ms: int, overdue_ms: int) -> None:
    config = CONFIG._replace(max_compaction_lag_ms=100, min_cleanable_dirty_ratio=1.0)
    found = find_cleanable_range(log_of(checkpoint_offset=20), config, now_ms)
    assert overdue_ms == found.overdue_ms
    assert (overdue_ms > 0) == found.may_be_cleaned(config)


def test_a_log_without_bytes_is_not_cleaned() -> None:
    empty = log_of(segments=[CleanableSegment(0, 0), CleanableSegment(10, 50)])
    found = find_cleanable_range(empty, CONFIG._replace(min_cleanable_dirty_ratio=0.0), NOW_MS)
    assert 0.0 == found.dirty_ratio
    assert not found.may_be_cleaned(CONFIG._replace(min_cleanable_dirty_ratio=0.0))


def test_a_log_of_one_segment_has_nothing_to_clean() -> None:
    single = log_of(segments=[CleanableSegment(0, 100)])
    assert 0 == find_cleanable_range(single, CONFIG, NOW_MS).cleanable_bytes


def test_a_checkpoint_in_the_active_segment_leaves_nothing() -> None:
    found = find_cleanable_range(log_of(checkpoint_offset=33), CONFIG, NOW_MS)
    assert (33, 30, 0) == (
        found.first_dirty_offset, found.first_uncleanable_offset, found.cleanable_bytes
    )  # fmt: skip


def test_the_dirtiest_of_those_that_may_be_cleaned_comes_first() -> None:
    clean = find_cleanable_range(log_of(checkpoint_offset=20), CONFIG, NOW_MS)
    other = TopicPartition("u", 1)
    dirty = find_cleanable_range(log_of(topic_partition=other), CONFIG, NOW_MS)
    assert dirty == dirtiest_range([clean, dirty], lambda _key: CONFIG)
    assert None is dirtiest_range([clean], lambda _key: CONFIG)
    assert None is dirtiest_range([], lambda _key: CONFIG)
