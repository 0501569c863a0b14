"""Rates of writes between two looks at a log."""

from __future__ import annotations

from engine.client.rates import LogLook, PartitionRate, rate_between

FIRST = LogLook(leader=1, start_offset=0, end_offset=100, size_bytes=10_000, at_ms=0)


def test_a_log_that_only_grew_was_written_what_it_grew_by() -> None:
    second = FIRST._replace(end_offset=300, size_bytes=34_000, at_ms=2_000)
    assert PartitionRate(12_000, 100.0) == rate_between(FIRST, second)


def test_a_log_that_retention_cut_is_estimated_by_its_mean_record() -> None:
    second = FIRST._replace(start_offset=90, end_offset=150, size_bytes=6_000, at_ms=1_000)
    assert PartitionRate(50 * 100, 50.0, is_estimate=True) == rate_between(FIRST, second)


def test_a_log_that_a_cleaner_has_shrunk_is_estimated() -> None:
    second = FIRST._replace(end_offset=120, size_bytes=4_000, at_ms=1_000)
    rate = rate_between(FIRST, second)
    assert rate.is_estimate
    assert 20.0 == rate.records_per_s
    assert 0 < rate.bytes_per_s <= 20 * 100


def test_a_log_that_nobody_writes_to_has_no_rate() -> None:
    assert PartitionRate(0, 0.0) == rate_between(FIRST, FIRST._replace(at_ms=5_000))
    deleted = FIRST._replace(start_offset=100, size_bytes=0, at_ms=5_000)
    assert PartitionRate(0, 0.0, is_estimate=True) == rate_between(FIRST, deleted)
