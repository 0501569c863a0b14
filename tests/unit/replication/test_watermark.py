"""The watermark rules, with plain values."""

from __future__ import annotations

from engine.replication.watermark import (
    Isolation,
    follower_high_watermark,
    leader_high_watermark,
    readable_end,
)


def test_leader_watermark_is_the_least_end() -> None:
    assert 7 == leader_high_watermark(5, 10, [8, 7])


def test_a_lone_leader_commits_at_once() -> None:
    assert 10 == leader_high_watermark(5, 10, [])


def test_leader_watermark_never_goes_back() -> None:
    assert 5 == leader_high_watermark(5, 10, [3])


def test_leader_watermark_waits_for_a_follower_that_has_not_fetched() -> None:
    assert 5 == leader_high_watermark(5, 10, [10, -1])


def test_leader_watermark_stays_within_the_leaders_log() -> None:
    assert 10 == leader_high_watermark(5, 10, [12])


def test_follower_watermark_is_the_leaders_within_its_local_log() -> None:
    assert 4 == follower_high_watermark(9, 4, 0)
    assert 9 == follower_high_watermark(9, 12, 0)
    assert 3 == follower_high_watermark(9, 1, 3)


def test_each_reader_has_its_end() -> None:
    ends = {isolation: readable_end(isolation, 9, 6, 4) for isolation in Isolation}
    assert {Isolation.LOG_END: 9, Isolation.HIGH_WATERMARK: 6, Isolation.COMMITTED: 4} == ends


def test_committed_records_end_at_the_watermark_at_most() -> None:
    assert 6 == readable_end(Isolation.COMMITTED, 9, 6, 8)
