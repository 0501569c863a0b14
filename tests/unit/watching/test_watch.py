"""Rows of a watched cluster, by samples that are plain values."""

from __future__ import annotations

import pytest

from engine.client.metadata import NO_BROKER
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.exporter.cluster_sample import RequestFailure
from engine.limits import WATCH_SAMPLES_KEPT
from engine.watching.watch import Watch
from engine.watching.watch_rows import Frame
from tests.unit.watching.samples import T0, T1, group, row, sample, view

SIZES = {1: {T0: 100, T1: 40}, 2: {T0: 100, T1: 50}}
GROWN = {1: {T0: 1100, T1: 40}, 2: {T0: 1100, T1: 50}}


def test_the_first_sample_has_no_rates_and_the_second_has() -> None:
    watch = Watch()
    first = watch.add_sample(sample(0, sizes=SIZES))
    assert [None, None] == [row.bytes_per_s for row in first.partitions]
    assert (None, 150) == (first.topics[0].bytes_per_s, first.topics[0].size_bytes)
    frame = watch.add_sample(sample(5_000, ends={T0: 10, T1: 0}, sizes=GROWN))
    assert [200, 0] == [row.bytes_per_s for row in frame.partitions]
    assert (200, 2.0) == (frame.topics[0].bytes_per_s, frame.topics[0].records_per_s)
    assert [200, 0] == [broker.bytes_per_s for broker in frame.brokers]


def test_a_rate_is_of_the_window_and_not_of_all_samples() -> None:
    watch = Watch()
    watch.add_sample(sample(0, sizes=SIZES))
    for at_ms in (20_000, 25_000, 30_000):
        frame = watch.add_sample(sample(at_ms, ends={T0: 10, T1: 0}, sizes=GROWN))
    assert 0 == frame.partitions[0].bytes_per_s


def test_after_a_long_silence_the_rate_is_of_that_time() -> None:
    watch = Watch()
    watch.add_sample(sample(0, sizes=SIZES))
    frame = watch.add_sample(sample(100_000, ends={T0: 10, T1: 0}, sizes=GROWN))
    assert 10 == frame.partitions[0].bytes_per_s


def states(frame: Frame) -> list[str]:
    return [broker.state for broker in frame.brokers]


def test_a_broker_that_was_seen_once_is_gone_and_one_that_keeps_silent_is_silent() -> None:
    watch = Watch()
    watch.add_sample(sample(0))
    lost = view(row(0, (1, 2), (1,)), row(1, (2, 1), (1,), leader=1), racks={1: None})
    frame = watch.add_sample(sample(1, cluster=lost))
    assert ["up", "gone"] == states(frame)
    assert (None, 0) == (frame.brokers[1].size_bytes, frame.brokers[1].leader_count)
    assert ["up", "silent"] == states(watch.add_sample(sample(2, silent=frozenset({2}))))
    assert ["up", "up"] == states(watch.add_sample(sample(3)))


def test_partitions_in_trouble_are_those_of_silent_leaders_too() -> None:
    watch = Watch()
    frame = watch.add_sample(sample(0, silent=frozenset({2})))
    assert [(1, "silent-leader")] == [(p.partition, p.trouble) for p in frame.troubled]
    assert 1 == frame.topics[0].trouble_count
    offline = view(row(0, leader=NO_BROKER), row(1, (2, 1), (2,)))
    frame = watch.add_sample(sample(1, cluster=offline))
    assert ["offline", "under-replicated"] == [p.trouble for p in frame.troubled]


def test_settings_that_one_sample_has_hold_for_later_ones() -> None:
    watch, lacking = Watch(), view(row(0, (1, 2), (1,)))
    watch.add_sample(sample(0, min_isr={"t": 2}))
    frame = watch.add_sample(sample(1, cluster=lacking))
    assert ["under-min-isr"] == [p.trouble for p in frame.troubled]


def test_a_group_has_its_lag_in_records_and_in_time_and_its_trend() -> None:
    watch = Watch()
    for number in range(4):
        ends = {T0: 10 * number, T1: 0}
        members = (group("g", {T0: 5}, (T0,)),)
        frame = watch.add_sample(sample(number * 5_000, ends=ends, groups=members))
    (found,) = frame.groups
    assert (25, 1.7, "OK") == (found.lag, found.lag_per_s, found.verdict)
    # The record at offset 5 came half-way between the first two samples.
    assert 12.5 == found.lag_s
    (lag,) = watch.lags_of("g")
    assert (5, 30, 25, "client", "/h") == (
        lag.committed_offset,
        lag.end_offset,
        lag.lag,
        lag.client_id,
        lag.client_host,
    )
    assert [("g", 25)] == watch.readers_of(T0)
    assert [] == watch.lags_of("gone")


def test_a_group_that_stands_still_is_a_verdict() -> None:
    watch = Watch()
    members = (group("g", {T0: 5}, (T0,)),)
    for number in range(WATCH_SAMPLES_KEPT + 3):
        ends = {T0: 10 + number, T1: 0}
        frame = watch.add_sample(sample(number * 5_000, ends=ends, groups=members))
    assert "STALL" == frame.groups[0].verdict


def test_a_move_has_what_is_copied_and_how_long_it_takes() -> None:
    watch = Watch()
    moves = {T0: OngoingReassignment((1, 2, 3), (3,), (2,))}
    rows = (row(0, (1, 2, 3), (1, 2)), row(1, (2, 1)))
    cluster = view(*rows, racks={1: None, 2: None, 3: None})
    watch.add_sample(sample(0, cluster=cluster, moves=moves, sizes={1: {T0: 1000}, 3: {T0: 0}}))
    frame = watch.add_sample(
        sample(5_000, cluster=cluster, moves=moves, sizes={1: {T0: 1000}, 3: {T0: 500}})
    )
    (move,) = frame.moves
    assert ((1, 2), (1, 3)) == (move.original, move.target)
    assert (500, 1000, 100.0, 5.0) == (
        move.copied_bytes,
        move.total_bytes,
        move.bytes_per_s,
        move.left_s,
    )
    # What a move brings is not missing.
    assert [] == frame.troubled


def test_the_replicas_of_a_partition_begin_with_its_leader() -> None:
    watch = Watch()
    watch.add_sample(
        sample(0, sizes={2: {T1: 50}}, cluster=view(row(0), row(1, (1, 2), (2,), leader=2)))
    )
    assert [
        (2, "up", "leader", True, "/d", 50),
        (1, "up", "follower", False, None, None),
    ] == [
        (r.broker_id, r.state, r.role, r.is_in_sync, r.path, r.size_bytes)
        for r in watch.replicas_of(T1)
    ]
    assert [] == watch.replicas_of(T1._replace(topic="gone"))


def test_requests_that_failed_are_shown() -> None:
    timed = sample(0)
    failure = RequestFailure(2, "ListGroups", EngineError("why"))
    failed = timed._replace(sample=timed.sample._replace(failures=(failure,)))
    assert ("broker 2 ListGroups: why",) == Watch().add_sample(failed).failures


@pytest.mark.parametrize("count", [0, 3])
def test_a_cluster_without_topics_or_groups_has_no_rows(count: int) -> None:
    empty = view()._replace(topics={})
    watch = Watch()
    for number in range(count + 1):
        frame = watch.add_sample(sample(number, cluster=empty, ends={}))
    assert ((), (), (), ()) == (frame.partitions, frame.topics, frame.groups, frame.moves)
    assert ["up", "up"] == states(frame)


def test_brokers_of_kraft_do_not_name_the_controller() -> None:
    watch, timed = Watch(), sample(0)
    assert 1 == watch.add_sample(timed).controller_id
    unnamed = timed.sample.view._replace(is_controller_known=False)
    frame = watch.add_sample(timed._replace(sample=timed.sample._replace(view=unnamed)))
    assert (None, [False, False]) == (
        frame.controller_id,
        [broker.is_controller for broker in frame.brokers],
    )
