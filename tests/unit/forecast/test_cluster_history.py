"""Logs of a live cluster as they are estimated."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.client.cluster_admin import LogDirView, ReplicaSize
from engine.client.producing import OutgoingRecord, Producer
from engine.errors import EngineError
from engine.forecast.cluster_history import (
    _division_times,
    _estimated_parts,
    leaders_sizes,
    request_histories,
    request_log_extents,
)
from engine.forecast.log_history import LogHistory
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

KEY = TopicPartition("t", 0)
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2), (2, 1)])
    cluster.pass_time(2000)
    producer = Producer(client_of(cluster, MemoryStreams(cluster)))
    for number in range(40):
        time_ms = FIRST_MS + 1000 * number
        producer.add(OutgoingRecord("t", None, b"value", timestamp_ms=time_ms, partition=0))
        producer.flush()
    cluster.pass_time(1000)
    return cluster


def history(cluster: MemoryCluster, *cuts_ms: int) -> LogHistory:
    log = request_histories(client_of(cluster, MemoryStreams(cluster)), ["t"], cuts_ms)[KEY]
    assert not isinstance(log, EngineError)
    return log


def test_parts_have_the_offsets_and_bytes_of_the_log(cluster: MemoryCluster) -> None:
    log = history(cluster)
    real = cluster.partition(1).log
    assert (real.size_bytes, real.log_end_offset) == (log.size_bytes, log.high_watermark)
    assert log.is_estimated
    assert 24 <= len(log.segments) <= 48
    ends = [segment.end_offset for segment in log.segments]
    assert [0, *ends[:-1]] == [segment.base_offset for segment in log.segments]
    times = [segment.largest_timestamp_ms for segment in log.segments]
    assert sorted(times) == times
    assert [False, True] == sorted({s.is_active for s in log.segments})
    assert log.segments[-1].is_active


def test_a_time_that_matters_is_a_cut(cluster: MemoryCluster) -> None:
    cut_ms = FIRST_MS + 10_500
    older = [s for s in history(cluster, cut_ms).segments if s.largest_timestamp_ms < cut_ms]
    # Records came every second: eleven are older.
    assert 11 == older[-1].end_offset


def test_records_of_one_time_are_taken_apart_evenly() -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    for _ in range(100):
        cluster.produce(1, 1)
    cluster.pass_time(1000)
    log = history(cluster)
    assert 100 * 80 == log.size_bytes
    assert max(segment.size_bytes for segment in log.segments) <= 2 * log.size_bytes // 24
    assert [FIRST_MS] * len(log.segments) == [s.largest_timestamp_ms for s in log.segments]


def test_an_empty_log_is_one_part(cluster: MemoryCluster) -> None:
    logs = request_histories(client_of(cluster, MemoryStreams(cluster)), ["t"])
    empty = logs[TopicPartition("t", 1)]
    assert not isinstance(empty, EngineError)
    assert (1, 0, None) == (len(empty.segments), empty.size_bytes, empty.first_timestamp_ms)


def test_starts_are_those_of_the_leaders(cluster: MemoryCluster) -> None:
    starts = request_log_extents(client_of(cluster, MemoryStreams(cluster)))
    assert (0, 40) == starts[KEY][:2]
    assert cluster.partition(1).log.size_bytes == starts[KEY].size_bytes


def test_a_partition_without_a_leader_is_reported_and_the_others_go_on(
    cluster: MemoryCluster,
) -> None:
    cluster.cut_power(2)
    cluster.cut_power(1)
    cluster.pass_time(30_000)
    logs = request_histories(client_of(cluster, MemoryStreams(cluster)), ["t"])
    assert 2 == sum(isinstance(log, EngineError) for log in logs.values())


def test_parts_begin_at_the_log_start_and_share_bytes_by_records() -> None:
    parts = _estimated_parts(1000, 100, 200, [(50, 110), (60, 110), (70, 300)], 90)
    older = [part for part in parts if part.end_offset <= 110]
    assert (100, 110) == (older[0].base_offset, older[-1].end_offset)
    assert {49} == {part.largest_timestamp_ms for part in older}
    assert {90} == {part.largest_timestamp_ms for part in parts[len(older) :]}
    assert not any(part.is_active for part in parts[:-1])
    assert (200, True) == (parts[-1].end_offset, parts[-1].is_active)
    assert 1000 == sum(part.size_bytes for part in parts)
    assert all(part.size_bytes == 10 * (part.end_offset - part.base_offset) for part in parts)
    assert max(part.end_offset - part.base_offset for part in parts) <= 2 * (100 // 24)


def test_times_are_even_between_oldest_and_newest_and_what_matters_is_among_them() -> None:
    times = _division_times(1000, 1240, [1005, 1000, 1240, 1241])
    assert [1005, *range(1010, 1240, 10), 1240] == times
    assert [] == _division_times(-1, 1000, [5]) == _division_times(1000, 1000, [1000])
    assert [] != _division_times(0, 1000, [])


def test_records_of_the_first_millisecond_have_a_time() -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    producer = Producer(client_of(cluster, MemoryStreams(cluster)))
    producer.add(OutgoingRecord("t", None, b"value", timestamp_ms=0, partition=0))
    producer.flush()
    cluster.pass_time(1000)
    assert 0 == history(cluster).first_timestamp_ms


def test_few_records_are_taken_apart_one_by_one() -> None:
    assert [(0, 1), (1, 2), (2, 4)] == [part[:2] for part in _estimated_parts(400, 0, 4, [], 90)]


def test_a_step_more_than_two_is_taken_apart() -> None:
    # A step is ten records: what has twice as many stays whole.
    whole = _estimated_parts(2400, 0, 240, [(50, 20)], 90)
    assert (0, 20) == whole[0][:2]
    apart = _estimated_parts(2400, 0, 240, [(50, 21)], 90)
    assert [(0, 10), (10, 21)] == [part[:2] for part in apart[:2]]


def test_sizes_are_those_of_leaders_that_answer() -> None:
    first, second, third = (TopicPartition("t", number) for number in range(3))
    silent = EngineError("silent")
    own = (ReplicaSize(first, 50, 0, False), ReplicaSize(second, 60, 0, False))
    future = (ReplicaSize(first, 7, 0, True),)
    dirs = [
        LogDirView(path, None, sizes, None, None) for path, sizes in (("a", own), ("b", future))
    ]
    told: dict[int, Sequence[LogDirView] | EngineError] = {1: dirs, 2: silent}
    # Broker 1 leads the first and follows the second.
    assert ({first: 50}, {second: silent}) == leaders_sizes({first: 1, second: 2, third: 3}, told)


def test_one_record_of_the_future_leaves_the_others_apart() -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    producer = Producer(client_of(cluster, MemoryStreams(cluster)))
    for number in range(40):
        cluster.pass_time(1000)
        time_ms = FIRST_MS * 2 if number == 39 else None
        producer.add(OutgoingRecord("t", None, b"value", timestamp_ms=time_ms, partition=0))
        producer.flush()
    cluster.pass_time(1000)
    parts = history(cluster).segments
    assert FIRST_MS * 2 == parts[-1].largest_timestamp_ms
    assert 20 <= len({part.largest_timestamp_ms for part in parts})
