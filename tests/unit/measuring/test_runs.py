"""Runs that are measured, on scripted clusters and a clock that tests move."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from engine.client.fetching import FetchOptions
from engine.client.partitioning import partition_of_key
from engine.client.producing import ProducerOptions
from engine.errors import ApiError
from engine.measuring.consuming_run import ConsumingRun
from engine.measuring.latency_run import LatencyRun, LatencySides
from engine.measuring.load import LoadShape, RecordLoad
from engine.measuring.producing_run import ProducingRun
from engine.model import TopicPartition
from engine.records.builder import BatchBuilder, BatchSettings
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster
from tests.unit.client.produce_log import P0, P1, ProduceLog

NOT_AUTHORIZED = 29
MS = 1_000_000


class SeededLetters:
    """Entropy whose bytes are all alike."""

    def random_bytes(self, length: int) -> bytes:
        return bytes(length)

    def random_below(self, bound: int) -> int:
        return 0


def load(key_count: int = 0, rate: float | None = None, size: int = 10) -> RecordLoad:
    return RecordLoad(LoadShape("t", 2, size, key_count, rate), SeededLetters())


def producing(
    log: ProduceLog, record_count: int, rate: float | None = None, **shape: Any
) -> ProducingRun:
    return ProducingRun(
        log.client(),
        load(rate=rate, **shape),
        ProducerOptions(),
        record_count,
        lambda: log.clock.now_ms * MS,
    )


def run_out(run: ProducingRun | ConsumingRun | LatencyRun) -> None:
    for _ in range(10_000):
        if run.is_done:
            return
        run.step()
    raise AssertionError("the run does not end")


# -- the load


def test_partitions_come_in_turn_from_chunk_to_chunk() -> None:
    chunks = [load().build_chunk(first, 3) for first in (0, 3)]
    found = [
        (first, values.partition, list(places))
        for first, chunk in zip((0, 3), chunks, strict=True)
        for values, places in chunk
    ]
    assert [(0, 0, [0, 2]), (0, 1, [1]), (3, 1, [0, 2]), (3, 0, [1])] == found


def test_keys_come_in_turn_and_choose_the_partition_themselves() -> None:
    ((values, places),) = load(key_count=2).build_chunk(1, 3)
    assert ([b"1", b"0", b"1"], None, range(3)) == (values.keys, values.partition, places)


def test_values_have_the_size_that_is_requested() -> None:
    for size in (0, 1, 5_000_000):
        ((values, _),) = RecordLoad(LoadShape("t", 1, size), SeededLetters()).build_chunk(0, 1)
        assert size == len(values.values[0])


# -- producing


def test_every_record_is_stored_once_and_the_warm_up_is_not_counted() -> None:
    log = ProduceLog()
    run = producing(log, 1000)
    assert 2 == run.warm_up(0)
    run_out(run)
    measurement = run.finish()
    assert (1000, 10_000) == (measurement.records, measurement.size_bytes)
    assert 1000 == measurement.latencies.count
    assert 501 == len(log.values(P0)) == len(log.values(P1))


def test_the_window_begins_when_the_warm_up_is_stored() -> None:
    log = ProduceLog()
    run = producing(log, 10)
    log.clock.now_ms += 60_000
    run.warm_up(100)
    began_ms = log.clock.now_ms
    assert began_ms * MS == run.measurement.began_ns
    run_out(run)
    assert log.clock.now_ms - began_ms >= run.finish().total.end_s * 1000


def test_each_record_has_a_latency_also_where_those_of_chunks_are_alike() -> None:
    log = ProduceLog()
    run = ProducingRun(log.client(), load(), ProducerOptions(linger_ms=5), 3000, lambda: 0)
    run.warm_up(0)
    run_out(run)
    assert (3000, 3000) == (run.finish().records, run.measurement.latencies.count)


def test_a_warm_up_that_fails_sends_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ProduceLog()
    run = producing(log, 10, size=1000)
    log.codes = [NOT_AUTHORIZED] * 50
    assert run.warm_up(100_000) < 100_000
    assert isinstance(run.error, ApiError)


def test_waiting_for_a_rate_is_no_longer_than_until_the_next_record_or_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = ProduceLog()
    slow = producing(log, 3, rate=10)
    slow.warm_up(0)
    waits = list[int]()
    poll = slow._producer.poll

    def noted(wait_ms: int) -> Any:
        waits.append(wait_ms)
        return poll(wait_ms)

    monkeypatch.setattr(slow._producer, "poll", noted)
    slow.step()
    assert [0] == waits
    slow.step()
    assert [0, 20] == waits
    # One is due in a moment: it is neither sent before, nor is nothing sent.
    monkeypatch.setattr(slow._producer, "due_in_ms", lambda: None)
    assert 7 == slow._wait_ms(slow._due_ns(slow._sent) - 7 * MS)
    assert 20 == slow._wait_ms(slow._due_ns(slow._sent) - 70 * MS)
    monkeypatch.setattr(slow._producer, "due_in_ms", lambda: 3)
    assert 3 == slow._wait_ms(slow._due_ns(slow._sent) - 70 * MS)


@pytest.mark.parametrize("rate", [None, 100_000.0])
def test_times_are_kept_of_what_is_on_its_way_alone(rate: float | None) -> None:
    log = ProduceLog()
    run = ProducingRun(
        log.client(),
        load(rate=rate),
        ProducerOptions(linger_ms=5, batch_bytes=300),
        5000,
        lambda: log.clock.now_ms * MS,
    )
    run.warm_up(0)
    most = 0
    while not run.is_done:
        run.step()
        assert run._pending.keys() == run._chunks.keys()
        assert sum(run._pending.values()) == run._sent - run._done
        most = max(most, run._sent - run._done)
    assert most
    assert not run._chunks


def test_a_rate_is_kept() -> None:
    log = ProduceLog()
    run = producing(log, 100, rate=1000)
    run.warm_up(0)
    run_out(run)
    total = run.finish().total
    assert 0.099 <= total.end_s <= 0.125


def test_a_latency_under_a_rate_begins_when_the_record_was_due() -> None:
    log = ProduceLog()
    run = producing(log, 11, rate=1000)
    run.warm_up(0)
    run.step()
    # The process is held up: ten records are late by then, each by another time.
    log.clock.now_ms += 500
    run_out(run)
    latencies = run.finish().latencies
    assert 11 == latencies.count
    assert 495_000 <= latencies.max_us
    assert 10 == latencies.count - sum(
        count for lower, count in latencies._counts.items() if lower < 400_000
    )


def test_keys_go_where_the_partitioner_of_kafka_has_them() -> None:
    log = ProduceLog()
    run = producing(log, 30, key_count=3)
    run.warm_up(0)
    run_out(run)
    wanted = Counter(partition_of_key(b"%d" % (number % 3), 2) for number in range(32))
    assert [wanted[0], wanted[1]] == [len(log.values(P0)), len(log.values(P1))]


def test_a_record_that_is_not_stored_ends_the_run_with_what_was_measured() -> None:
    log = ProduceLog()
    run = producing(log, 100_000)
    run.warm_up(0)
    run.step()
    run.step()
    log.codes = [NOT_AUTHORIZED] * 50
    run_out(run)
    assert isinstance(run.error, ApiError)
    assert 0 < run.failed_count
    assert run.finish().records + run.failed_count <= 100_000


# -- consuming


class Records(FakeCluster):
    """Two partitions with batches of two records each; a fetch gives one batch."""

    def __init__(self, batch_count: int) -> None:
        super().__init__()
        self.end = 2 * batch_count
        self.handlers["Fetch"] = self._fetch

    def _fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("FetchResponse")
        self.clock.now_ms += 5
        topics = []
        for topic in body.topics:
            named = {"topic": "t"} if version <= 12 else {"topic_id": topic.topic_id}
            row = response.FetchableTopicResponse(**named)
            for requested in topic.partitions:
                row.partitions.append(
                    response.PartitionData(
                        partition_index=requested.partition,
                        high_watermark=self.end,
                        records=self._batch(requested.fetch_offset),
                    )
                )
            topics.append(row)
        return response(responses=topics)

    def _batch(self, offset: int) -> bytes:
        if offset >= self.end:
            return b""
        builder = BatchBuilder(BatchSettings(base_offset=offset))
        builder.append(1, b"k", b"value")
        builder.append(1, None, b"value")
        return bytes(builder.build())


def consuming(cluster: Records, end: int, **options: Any) -> ConsumingRun:
    keys = (P0, P1)
    return ConsumingRun(
        cluster.client(),
        dict.fromkeys(keys, 0),
        dict.fromkeys(keys, end),
        FetchOptions(),
        lambda: cluster.clock.now_ms * MS,
        **options,
    )


@pytest.mark.parametrize(("warm_up", "read"), [(0, 0), (1, 2), (9, 10), (1000, 200)])
def test_the_warm_up_is_read_evenly_and_all_behind_it_is_measured(warm_up: int, read: int) -> None:
    cluster = Records(50)
    run = consuming(cluster, 100)
    cluster.clock.now_ms += 60_000
    assert read == run.warm_up(warm_up)
    began_ms = cluster.clock.now_ms
    assert began_ms * MS == run.measurement.began_ns
    run_out(run)
    measurement = run.finish()
    assert 200 - read == measurement.records
    # A batch begins at the offset that is fetched; the first of its two records has a key.
    of_values, of_keys = 5 * (200 - read), 2 * ((101 - read // 2) // 2)
    assert of_values + of_keys == measurement.size_bytes
    fetched_ms = cluster.clock.now_ms - began_ms
    assert fetched_ms >= measurement.total.end_s * 1000
    assert measurement.latencies.total_us <= fetched_ms * 1000


def test_the_window_has_no_fetch_of_the_warm_up_and_no_metadata() -> None:
    cluster = Records(50)
    run = consuming(cluster, 100)
    run.warm_up(9)
    asked = list[int]()
    fetch = cluster.handlers["Fetch"]

    def noted(body: Any, version: int, address: tuple[str, int]) -> Any:
        asked.append(min(one.fetch_offset for topic in body.topics for one in topic.partitions))
        return fetch(body, version, address)

    cluster.handlers["Fetch"] = noted
    cluster.handlers.pop("Metadata")
    run.step()
    assert 5 == min(asked)


def test_an_error_ends_the_warm_up_and_is_the_first() -> None:
    cluster = Records(50)
    run = consuming(cluster, 100)
    cluster.handlers["Fetch"] = lambda body, version, _: message_class("FetchResponse")(
        error_code=NOT_AUTHORIZED
    )
    assert 0 == run.warm_up(10)
    assert isinstance(run.error, ApiError)
    assert NOT_AUTHORIZED == run.error.code
    assert run.is_done


def test_consuming_ends_at_the_ends_and_at_the_count() -> None:
    odd = consuming(Records(50), 51)
    run_out(odd)
    assert 102 == odd.finish().records
    few = consuming(Records(50), 100, records_max=20)
    assert 10 == few.warm_up(10)
    run_out(few)
    assert 20 <= few.finish().records <= 26


def test_an_empty_topic_measures_nothing() -> None:
    run = consuming(Records(0), 0)
    assert 0 == run.warm_up(10)
    run_out(run)
    assert (0, None) == (run.finish().records, run.measurement.total.records_per_s)


# -- latency


class Relay(FakeCluster):
    """The consumer's side of a cluster: what was produced to the log can be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ProduceLog()
        self.clock = self.log.clock
        self.handlers["Fetch"] = self._fetch

    def values(self, partition: TopicPartition) -> list[bytes | None]:
        return self.log.values(partition)

    def _fetch(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("FetchResponse")
        self.clock.now_ms += 2
        topics = []
        for topic in body.topics:
            row = response.FetchableTopicResponse(topic_id=topic.topic_id, topic="t")
            for requested in topic.partitions:
                partition = TopicPartition("t", requested.partition)
                values = self.values(partition)[requested.fetch_offset :]
                row.partitions.append(
                    response.PartitionData(
                        partition_index=requested.partition,
                        high_watermark=len(self.values(partition)),
                        records=_batch_of(values, requested.fetch_offset) if values else b"",
                    )
                )
            topics.append(row)
        return response(responses=topics)


def _batch_of(values: list[bytes | None], offset: int) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=offset))
    for value in values:
        builder.append(1, None, value)
    return bytes(builder.build())


def latency_run(relay: Relay, count: int, rate: float | None = None) -> LatencyRun:
    sides = LatencySides(
        relay.log.client(),
        relay.client(),
        ProducerOptions(),
        FetchOptions(),
        {P0: 0, P1: 0},
    )
    return LatencyRun(sides, LoadShape("t", 2, 30, 0, rate), count, lambda: relay.clock.now_ms * MS)


@pytest.mark.parametrize("rate", [None, 100.0])
def test_each_record_is_measured_once_until_it_arrives(rate: float | None) -> None:
    relay = Relay()
    run = latency_run(relay, 20, rate)
    assert 5 == run.warm_up(5)
    run_out(run)
    measurement = run.finish()
    assert (20, 600, 20) == (
        measurement.records,
        measurement.size_bytes,
        measurement.latencies.count,
    )
    assert 25 == len(relay.values(P0)) + len(relay.values(P1))
    if rate is not None:
        assert measurement.total.end_s >= 0.19
    assert 2_000 <= measurement.latencies.max_us


def test_a_record_that_is_not_stored_ends_a_latency_run() -> None:
    relay = Relay()
    run = latency_run(relay, 20)
    relay.log.codes = [NOT_AUTHORIZED] * 50
    run_out(run)
    assert isinstance(run.error, ApiError)
    assert NOT_AUTHORIZED == run.error.code


def test_a_latency_run_waits_no_longer_than_until_the_next_record_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    relay = Relay()
    run = latency_run(relay, 3, rate=500)
    run.warm_up(0)
    waits = list[int]()
    poll = run._fetcher.poll

    def noted(wait_ms: int) -> Any:
        waits.append(wait_ms)
        return [] if wait_ms else poll(wait_ms)

    monkeypatch.setattr(run._fetcher, "poll", noted)
    run.step()
    # The fifth of all, two of them before the window, is due 4 ms behind its begin.
    run._sent, relay.clock.now_ms = 4, run.measurement.began_ns // MS
    run.step()
    assert [0, 4] == waits


def test_a_latency_run_that_ends_during_its_warm_up_has_measured_nothing() -> None:
    relay = Relay()
    run = latency_run(relay, 20)
    arrived = relay.handlers["Fetch"]

    def three_then_ctrl_c(body: Any, version: int, address: tuple[str, int]) -> Any:
        if len(relay.values(P0)) + len(relay.values(P1)) > 3:
            raise KeyboardInterrupt
        return arrived(body, version, address)

    relay.handlers["Fetch"] = three_then_ctrl_c
    with pytest.raises(KeyboardInterrupt):
        run.warm_up(10)
    measurement = run.finish()
    assert (0, 0) == (measurement.records, measurement.latencies.count)


def test_records_of_others_in_the_topic_are_passed_over() -> None:
    relay = Relay()
    other = latency_run(relay, 3)
    other._tag = b"another!"
    other.warm_up(3)
    run = latency_run(relay, 4)
    run.warm_up(0)
    run_out(run)
    assert 4 == run.finish().records


def test_a_record_that_does_not_arrive_ends_the_run_after_the_timeout() -> None:
    relay = Relay()
    run = latency_run(relay, 5)
    run.warm_up(2)
    relay.handlers["Fetch"] = lambda body, version, address: None
    run_out(run)
    assert "did not arrive" in str(run.error)
