"""Throttled replication: lists, rates, and which reads are throttled. Source: REPL-17."""

from __future__ import annotations

import pytest

from engine.host.memory import ManualClock
from engine.model import TopicPartition
from engine.replication.replication_quota import UNBOUNDED, is_listed
from tests.unit.replication.replicas import quota_of

KEY, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("replicas", "listed"),
    [((), False), (("*",), True), (("0:1", "1:2"), True), (("0:2", "1:1"), False)],
)
def test_a_topics_list_names_replicas_or_all(replicas: tuple[str, ...], listed: bool) -> None:
    assert listed is is_listed(replicas, 0, 1)


def test_what_comes_at_once_passes_and_the_next_waits_until_the_rate_is_down() -> None:
    clock = ManualClock()
    quota = quota_of(clock, [KEY], 1000)
    assert not quota.should_throttle(KEY)
    quota.record(KEY, 5000)
    assert quota.should_throttle(KEY)
    clock.advance(4999)
    assert quota.should_throttle(KEY)
    clock.advance(1)
    assert not quota.should_throttle(KEY)


def test_the_bound_itself_is_not_above_it() -> None:
    quota = quota_of(ManualClock(), [KEY], 1000)
    quota.record(KEY, 1000)
    assert not quota.is_exceeded
    quota.record(KEY, 1)
    assert quota.is_exceeded


def test_partitions_that_are_not_listed_neither_count_nor_wait() -> None:
    quota = quota_of(ManualClock(), [KEY], 10)
    quota.record(OTHER, 5000)
    assert not quota.is_exceeded
    quota.record(KEY, 5000)
    assert (True, False) == (quota.should_throttle(KEY), quota.should_throttle(OTHER))


def test_without_a_bound_nothing_waits_and_a_bound_counts_from_then_on() -> None:
    quota = quota_of(ManualClock(), [KEY])
    assert UNBOUNDED == quota.bound_per_s
    quota.record(KEY, 1 << 40)
    assert not quota.should_throttle(KEY)
    quota.bound_per_s = 1000
    assert quota.should_throttle(KEY)


def test_what_is_older_than_the_windows_is_forgotten() -> None:
    clock = ManualClock()
    quota = quota_of(clock, [KEY], 1)
    quota.record(KEY, 1 << 30)
    clock.advance(10_999)
    assert quota.is_exceeded
    clock.advance(1)
    assert not quota.is_exceeded
