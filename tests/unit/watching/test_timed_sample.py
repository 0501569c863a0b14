"""Rates between two samples of a cluster."""

from __future__ import annotations

from engine.client.reassignments import OngoingReassignment
from engine.watching.broker_shares import broker_shares
from engine.watching.timed_sample import (
    RateSum,
    leader_sizes,
    move_rates,
    rate_sum,
    sample_rates,
)
from tests.unit.watching.samples import T0, T1, row, sample, view

BEFORE = sample(0, ends={T0: 10, T1: 5}, sizes={1: {T0: 1000, T1: 7}, 2: {T0: 900, T1: 500}})
AFTER = sample(2_000, ends={T0: 30, T1: 5}, sizes={1: {T0: 3000, T1: 7}, 2: {T0: 900, T1: 500}})


def test_a_rate_is_what_the_leader_has_grown_by_in_a_second() -> None:
    rates = sample_rates(BEFORE, AFTER)
    assert (1000, 10.0) == (rates[T0].bytes_per_s, rates[T0].records_per_s)
    assert (0, 0.0) == (rates[T1].bytes_per_s, rates[T1].records_per_s)


def test_a_log_with_another_leader_has_no_rate() -> None:
    moved = AFTER._replace(
        sample=AFTER.sample._replace(view=view(row(0, leader=2), row(1, (2, 1))))
    )
    assert {T1} == set(sample_rates(BEFORE, moved))


def test_a_leader_that_does_not_say_its_sizes_has_no_rate() -> None:
    silent = AFTER._replace(sample=AFTER.sample._replace(log_dirs={}))
    assert {} == sample_rates(BEFORE, silent)
    assert {T0: 3000, T1: 500} == leader_sizes(AFTER.sample)


def test_a_sum_of_nothing_known_is_not_known() -> None:
    rates = sample_rates(BEFORE, AFTER)
    assert RateSum(1000, 10.0) == rate_sum(rates, [T0, T1])
    assert RateSum(None, None) == rate_sum({}, [T0, T1])


def test_a_move_is_as_fast_as_its_new_replicas_grow() -> None:
    moves = {T0: OngoingReassignment((1, 2), (2,), ())}
    first = sample(0, moves=moves, sizes={2: {T0: 100}})
    second = sample(4_000, moves=moves, sizes={2: {T0: 900}})
    assert {T0: 200.0} == move_rates(first, second)
    assert {} == move_rates(sample(0, sizes={2: {T0: 100}}), second)
    assert {} == move_rates(sample(0, moves=moves), second)


def test_a_move_has_a_rate_also_between_samples_of_one_moment_after_a_long_time() -> None:
    moves = {T0: OngoingReassignment((1, 2), (2,), ())}
    first = sample(90_000, moves=moves, sizes={2: {T0: 100}})
    second = sample(94_000, moves=moves, sizes={2: {T0: 900}})
    assert {T0: 200.0} == move_rates(first, second)
    assert {T0: 800_000.0} == move_rates(first, sample(90_000, moves=moves, sizes={2: {T0: 900}}))


def test_a_brokers_share_of_writes_is_that_of_the_partitions_that_it_leads() -> None:
    first, second = broker_shares(AFTER.sample, sample_rates(BEFORE, AFTER))
    assert (1000, 10.0) == (first.bytes_per_s, first.records_per_s)
    assert (0, 0.0) == (second.bytes_per_s, second.records_per_s)
