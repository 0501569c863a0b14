"""Tokens that come back at a rate."""

from __future__ import annotations

import pytest

from engine.timing.token_bucket import TokenBucket


def test_a_bucket_is_full_at_first() -> None:
    assert pytest.approx(22.0) == TokenBucket(11, 1000).refill(2.0, 5000)


def test_more_can_be_taken_than_there_is() -> None:
    bucket = TokenBucket(11, 1000)
    assert pytest.approx(-19.0) == bucket.take(30, 1.0, 0)
    assert pytest.approx(-9.0) == bucket.refill(1.0, 10_000)
    assert pytest.approx(1.0) == bucket.refill(1.0, 20_000)


def test_tokens_do_not_pile_up_beyond_the_burst() -> None:
    bucket = TokenBucket(11, 1000)
    bucket.take(1, 1.0, 0)
    assert pytest.approx(11.0) == bucket.refill(1.0, 1_000_000)


def test_a_lower_rate_makes_the_burst_smaller() -> None:
    bucket = TokenBucket(11, 1000)
    assert pytest.approx(110.0) == bucket.refill(10.0, 0)
    assert pytest.approx(11.0) == bucket.refill(1.0, 0)
