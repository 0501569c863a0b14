from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import ConnectionLost
from engine.client.partitioning import partition_of_key
from engine.client.produce_calls import ACKS_LEADER, ACKS_NONE
from engine.client.producing import (
    OutgoingRecord,
    OutgoingValues,
    Producer,
    ProducerCallbacks,
    ProducerOptions,
)
from engine.errors import ApiError, EngineError
from engine.host.streams import Stream, StreamEvent, TlsSettings
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.client_session import FramedStream
from tests.unit.client.produce_log import NOT_LEADER, P0, P1, ProduceLog, record, seen


def test_records_of_a_batch_go_together() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    for value in (b"a", b"b"):
        producer.add(record(value, partition=1))
    assert [(P1, 10, 2, None)] == seen(producer.flush())
    assert [b"a", b"b"] == log.values(P1)


def test_sequences_go_on_from_batch_to_batch() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    for _ in range(3):
        producer.add(record(b"a", partition=0))
        producer.add(record(b"b", partition=0))
        producer.flush()
    assert [(8, 0), (8, 2), (8, 4)] == [(b.producer_id, b.base_sequence) for _, b in log.batches]


def test_a_full_batch_is_sent_before_the_next_record() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(batch_bytes=200, linger_ms=10_000))
    producer.add(record(b"x" * 100, partition=0))
    assert [] == producer.poll()
    producer.add(record(b"y" * 100, partition=0))
    assert [(P0, 10, 1, None)] == seen(producer.poll(1_000))


def test_a_batch_leaves_when_it_has_waited_long_enough() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(linger_ms=50))
    assert producer.due_in_ms() is None
    producer.add(record(b"a", partition=0))
    assert 50 == producer.due_in_ms()
    log.clock.now_ms += 49
    assert [] == producer.poll()
    log.clock.now_ms += 1
    assert 0 == producer.due_in_ms()
    assert [(P0, 10, 1, None)] == seen(producer.poll(1_000))
    assert producer.is_idle


def test_records_without_a_key_stay_together_until_the_batch_is_sent() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    for _ in range(5):
        producer.add(record(b"a"))
    assert 1 == len(producer.flush())


class Drawing:
    """Draws the last of what there is, and keeps out of how many."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def random_below(self, count: int) -> int:
        self.counts.append(count)
        return count - 1


def test_records_without_a_key_go_to_partitions_with_a_leader() -> None:
    log = ProduceLog()
    log.leaders["t", 1] = -1
    client = log.client()
    client.entropy = Drawing()  # type: ignore[assignment]
    producer = Producer(client)
    producer.add(record(b"a"))
    assert [(P0, 10, 1, None)] == seen(producer.flush())


def test_a_partition_that_has_lost_its_leader_gets_no_more_records_without_a_key() -> None:
    log = ProduceLog()
    client = log.client()
    client.entropy = Drawing()  # type: ignore[assignment]
    producer = Producer(client)
    producer.add(record(b"a"))
    assert [P1] == [done.batch.partition for done in producer.flush()]
    log.leaders["t", 1] = -1
    log.codes = [NOT_LEADER]
    producer.add(record(b"b"))
    while producer._led["t"] == (0, 1):
        producer.poll(100)
    producer.add(record(b"c"))
    producer.poll(100)
    assert [b"c"] == log.values(P0)
    log.leaders["t", 1] = 2
    producer.flush()
    assert [b"a", b"b"] == log.values(P1)


def test_a_partition_without_a_leader_holds_up_no_other() -> None:
    log = ProduceLog()
    log.leaders["t", 1] = -1
    producer = Producer(log.client())
    producer.add(record(b"x", partition=1))
    producer.poll()
    began_ms = log.clock.now_ms
    for _ in range(20):
        producer.add(record(b"a", partition=0))
        producer.poll(10)
    assert 20 == len(log.values(P0))
    assert log.clock.now_ms < began_ms + 200
    # It is looked for again after pauses that grow, and not with each batch of the others.
    assert log.requested_apis().count("Metadata") < 6
    log.leaders["t", 1] = 2
    producer.flush()
    assert [b"x"] == log.values(P1)


def test_a_poll_waits_no_longer_than_it_may_for_a_partition_to_be_sent_again() -> None:
    log = ProduceLog()
    log.leaders = {("t", 0): -1, ("t", 1): -1}
    producer = Producer(log.client())
    producer.add(record(b"x", partition=1))
    for wait_ms in (0, 5, 10_000):
        began_ms = log.clock.now_ms
        producer.poll(wait_ms)
        # A request takes some ms.
        assert log.clock.now_ms <= began_ms + min(wait_ms, 130) + 5


def test_where_no_partition_has_a_leader_records_wait_for_one() -> None:
    log = ProduceLog()
    log.leaders = {("t", 0): -1, ("t", 1): -1}
    producer = Producer(log.client())
    producer.add(record(b"a"))
    producer.poll()
    log.leaders = {("t", 0): 1, ("t", 1): 2}
    assert [None] == [done.error for done in producer.flush()]


class Restarting(ProduceLog):
    """Brokers that take no connections for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.up_again_ms = 0

    def restart(self, lasting_ms: int) -> None:
        self.up_again_ms = self.clock.now_ms + lasting_ms
        for stream in self.opened:
            self.events.append(StreamEvent(stream, "closed", reason="reset"))

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        if self.clock.now_ms >= self.up_again_ms:
            return super().connect(host, port, tls)
        stream = FramedStream(self, host, port)
        self.events.append(StreamEvent(stream, "closed", reason="refused"))
        return stream


def test_metadata_that_is_old_is_used_while_no_broker_can_be_reached() -> None:
    log = Restarting()
    producer = Producer(log.client(), ProducerOptions(metadata_max_age_ms=1_000))
    producer.add(record(b"a", partition=None))
    producer.flush()
    log.restart(5_000)
    log.clock.now_ms += 2_000
    for _ in range(3):
        producer.add(record(b"b"))
    assert [None] == [done.error for done in producer.flush()]
    assert 4 == len(log.values(P0) + log.values(P1))


def test_a_place_comes_back_with_its_batch() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    for place in (3, 4, 9):
        producer.add(record(b"a", partition=0), place)
    producer.add_fast(OutgoingValues("t", [b"b", b"c"], partition=0), range(10, 12))
    (result,) = producer.flush()
    assert [3, 4, 9, 10, 11] == list(result.batch.places)


def test_lines_at_once_go_where_they_go_one_by_one() -> None:
    keys = [b"%d" % number for number in range(50)]
    values = [b"v" * number for number in range(50)]
    at_once, one_by_one = ProduceLog(), ProduceLog()
    producer = Producer(at_once.client(), ProducerOptions(batch_bytes=300))
    producer.add_fast(OutgoingValues("t", values, keys), range(1, 51))
    assert not any(r.error for r in producer.flush())
    producer = Producer(one_by_one.client(), ProducerOptions(batch_bytes=300))
    for place, (key, value) in enumerate(zip(keys, values, strict=True), 1):
        producer.add(OutgoingRecord("t", key, value), place)
    producer.flush()
    for partition in (P0, P1):
        assert one_by_one.values(partition) == at_once.values(partition) != []


@pytest.mark.parametrize(("key", "partition"), [(b"a", P0), (b"d", P1)])
def test_lines_of_one_key_go_to_its_partition(key: bytes, partition: TopicPartition) -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    producer.add_fast(OutgoingValues("t", [b"x", b"y"], key=key), range(2))
    producer.flush()
    assert [b"x", b"y"] == log.values(partition)
    assert partition.partition == partition_of_key(key, 2)


def test_lines_without_a_key_stay_together() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    producer.add_fast(OutgoingValues("t", [b"x"]), range(1))
    producer.add_fast(OutgoingValues("t", [b"y"]), range(1, 2))
    assert 1 == len(producer.flush())


def test_a_first_record_is_taken_however_large_it_is() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(batch_bytes=100))
    values = [b"x" * 500, b"y", b"z" * 500]
    producer.add_fast(OutgoingValues("t", values, partition=0), range(3))
    producer.flush()
    assert values == log.values(P0)


def test_acks_0_waits_for_nothing() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_NONE))
    producer.add(record(b"a", partition=0))
    assert [(P0, -1, 1, None)] == seen(producer.flush())
    assert 1 == len(log.batches)


def test_acks_0_ends_only_when_the_broker_has_taken_everything() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_NONE))
    producer.add(record(b"a", partition=1))
    producer.flush()
    # A response to a later request on the same connection tells it.
    assert [("Produce", 2), ("Metadata", 2)] == log.requested[-2:]


def test_acks_0_says_when_the_connection_is_lost() -> None:
    log = ProduceLog()
    log.handlers["Produce"] = losing(log, stores=False)
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_NONE))
    producer.add(record(b"a", partition=0))
    with pytest.raises(ConnectionLost):
        producer.flush()


def test_without_records_nothing_is_asked() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    assert [] == producer.poll() == producer.flush()
    assert [] == log.requested


def test_a_partition_that_is_not_there_fails_soon() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    producer.add(record(b"a", partition=9))
    before_ms = log.clock.now_ms
    assert ["UNKNOWN_TOPIC_OR_PARTITION"] == [error for *_, error in seen(producer.flush())]
    assert log.clock.now_ms - before_ms < 1_000


# -- identity


def refused(code: int) -> Any:
    return lambda *_: message_class("InitProducerIdResponse")(error_code=code)


def test_where_no_id_is_given_it_goes_without_and_says_so() -> None:
    log = ProduceLog()
    log.handlers["InitProducerId"] = refused(31)
    told: list[EngineError] = []
    producer = Producer(log.client(), notes=ProducerCallbacks(on_plain=told.append))
    producer.add(record(b"a", partition=0))
    producer.flush()
    assert ["CLUSTER_AUTHORIZATION_FAILED"] == [e.name for e in told if isinstance(e, ApiError)]
    ((_, batch),) = log.batches
    assert (-1, -1, -1) == (batch.producer_id, batch.producer_epoch, batch.base_sequence)


def test_a_broker_that_knows_no_ids_is_served_too() -> None:
    log = ProduceLog()
    log.versions["InitProducerId"] = (99, 99)
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    assert [(P0, 10, 1, None)] == seen(producer.flush())


def test_an_id_that_was_requested_must_be_given() -> None:
    log = ProduceLog()
    log.handlers["InitProducerId"] = refused(31)
    producer = Producer(log.client(), ProducerOptions(is_idempotent=True))
    producer.add(record(b"a", partition=0))
    with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
        producer.flush()


@pytest.mark.parametrize(
    "options", [ProducerOptions(is_idempotent=False), ProducerOptions(acks=ACKS_LEADER)]
)
def test_without_idempotence_no_id_is_requested(options: ProducerOptions) -> None:
    log = ProduceLog()
    producer = Producer(log.client(), options)
    producer.add(record(b"a", partition=0))
    producer.flush()
    assert "InitProducerId" not in log.requested_apis()


# -- lost brokers


def losing(log: ProduceLog, *, stores: bool) -> Any:
    """Return a handler that closes the connection in place of an answer, the first time."""

    def handler(body: Any, version: int, address: tuple[str, int]) -> Any:
        log.handlers["Produce"] = log.produce
        if stores:
            log.produce(body, version, address)
        log.events.append(StreamEvent(log.opened[-1], "closed", reason="gone"))

    return handler


@pytest.mark.parametrize("stores", [False, True])
def test_an_idempotent_batch_is_stored_once_after_a_lost_answer(stores: bool) -> None:
    log = ProduceLog()
    log.handlers["Produce"] = losing(log, stores=stores)
    told: list[EngineError] = []
    producer = Producer(log.client(), notes=ProducerCallbacks(on_retry=told.append))
    producer.add(record(b"a", partition=0))
    assert [(P0, -1 if stores else 10, 1, None)] == seen(producer.flush())
    assert [b"a"] == log.values(P0)
    assert ["gone" in str(error) for error in told] == [True]


def test_without_idempotence_a_lost_answer_is_not_repeated() -> None:
    log = ProduceLog()
    log.handlers["Produce"] = losing(log, stores=False)
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_LEADER))
    producer.add(record(b"a", partition=0))
    (failed,) = producer.flush()
    assert ("gone" in str(failed.error), True) == (True, failed.is_doubtful)
    assert [] == log.values(P0)


def test_records_of_two_topics_in_turn_ask_for_metadata_once_each() -> None:
    log = ProduceLog()
    log.leaders["u", 0] = 1
    producer = Producer(log.client(), ProducerOptions(linger_ms=10_000))
    for _ in range(5):
        for topic in ("t", "u"):
            producer.add(OutgoingRecord(topic, b"k", b"v"))
    assert 2 == log.requested_apis().count("Metadata")


def test_partitions_that_were_added_are_used_once_metadata_is_old() -> None:
    log = ProduceLog()
    del log.leaders["t", 1]
    producer = Producer(log.client(), ProducerOptions(metadata_max_age_ms=1_000))
    producer.add(OutgoingRecord("t", b"d", b"before"))
    producer.flush()
    log.leaders["t", 1] = 2
    log.clock.now_ms += 1_000
    producer.add(OutgoingRecord("t", b"d", b"after"))
    producer.flush()
    assert ([b"before"], [b"after"]) == (log.values(P0), log.values(P1))


def test_a_partition_that_failed_goes_on_behind_what_is_under_way() -> None:
    log = ProduceLog()
    options = ProducerOptions(linger_ms=0, goes_on=True, is_idempotent=False)
    producer = Producer(log.client(), options)
    log.codes = [29]
    producer.add(record(b"a", partition=0))
    assert ["TOPIC_AUTHORIZATION_FAILED"] == [row[3] for row in seen(producer.flush())]
    producer.add(record(b"b", partition=0))
    assert [None] == [row[3] for row in seen(producer.flush())]
    assert [b"b"] == log.values(P0)


def test_a_partition_that_failed_takes_nothing_behind_the_gap() -> None:
    log = ProduceLog()
    producer = Producer(log.client())
    log.codes = [29]
    for value in (b"a", b"b"):
        producer.add(record(value, partition=0))
        assert ["TOPIC_AUTHORIZATION_FAILED"] == [row[3] for row in seen(producer.flush())]
    assert [] == log.values(P0)


def test_a_record_that_cannot_be_written_leaves_the_others_whole() -> None:
    log = ProduceLog()
    producer = Producer(log.client(), ProducerOptions(linger_ms=10_000))
    producer.add(record(b"a", partition=0))
    with pytest.raises(TypeError):
        producer.add(record("text", partition=0))  # type: ignore[arg-type]
    producer.add(record(b"b", partition=0))
    producer.flush()
    assert [b"a", b"b"] == log.values(P0)


def test_no_lines_at_once_open_no_batch() -> None:
    producer = Producer(ProduceLog().client())
    producer.add_fast(OutgoingValues("t", [], partition=0), range(0))
    assert producer.is_idle
