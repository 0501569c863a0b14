from __future__ import annotations

from typing import Any

from engine.client.producing import (
    ACKS_LEADER,
    ACKS_NONE,
    OutgoingRecord,
    Produced,
    Producer,
    ProducerOptions,
)
from engine.errors import ApiError
from engine.host.streams import StreamEvent
from engine.model import TopicPartition
from engine.records.view import batches_in
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Log(FakeCluster):
    """A cluster that keeps what is produced."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[TopicPartition, Any]] = []
        self.codes: list[int] = []
        self.handlers["Produce"] = self.produce
        self.handlers["InitProducerId"] = lambda *_: message_class("InitProducerIdResponse")(
            producer_id=7 + self.asked_apis().count("InitProducerId"), producer_epoch=0
        )

    def produce(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ProduceResponse")
        rows = []
        for topic in body.topic_data:
            row = response.TopicProduceResponse(name=topic.name)
            for data in topic.partition_data:
                code = self.codes.pop(0) if self.codes else 0
                if code == 0:
                    (batch,) = batches_in(memoryview(bytes(data.records)), allow_partial_tail=False)
                    self.batches.append((TopicPartition(topic.name, data.index), batch))
                row.partition_responses.append(
                    response.PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=len(self.batches) * 10
                    )
                )
            rows.append(row)
        return None if body.acks == 0 else response(responses=rows)


def record(value: bytes, **fields: Any) -> OutgoingRecord:
    return OutgoingRecord("t", None, value, **fields)


def test_records_of_a_batch_go_together() -> None:
    log = Log()
    producer = Producer(log.client())
    for value in (b"a", b"b"):
        assert {} == producer.add(record(value, partition=1))
    assert {P1: Produced(10, 2)} == producer.flush()
    ((partition, batch),) = log.batches
    assert (P1, [b"a", b"b"]) == (partition, [r.value for r in batch.records()])


def test_sequences_go_on_from_batch_to_batch() -> None:
    log = Log()
    producer = Producer(log.client())
    for _ in range(3):
        producer.add(record(b"a", partition=0))
        producer.add(record(b"b", partition=0))
        producer.flush()
    assert [(8, 0), (8, 2), (8, 4)] == [(b.producer_id, b.base_sequence) for _, b in log.batches]


def test_a_full_batch_is_sent_before_the_next_record() -> None:
    log = Log()
    producer = Producer(log.client(), ProducerOptions(batch_bytes=200))
    assert {} == producer.add(record(b"x" * 100, partition=0))
    assert {P0: Produced(10, 1)} == producer.add(record(b"y" * 100, partition=0))


def test_records_without_a_key_stay_together_until_the_batch_is_sent() -> None:
    log = Log()
    producer = Producer(log.client())
    for _ in range(5):
        producer.add(record(b"a"))
    assert 1 == len(producer.flush())


def test_a_retriable_error_sends_the_same_batch_again() -> None:
    log = Log()
    log.codes = [19]
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    assert {P0: Produced(10, 1)} == producer.flush()
    assert 1 == len(log.batches)


def test_a_batch_that_is_there_already_is_no_failure() -> None:
    log = Log()
    log.codes = [46]
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    assert {P0: Produced(-1, 1)} == producer.flush()


def test_after_a_failure_the_producer_takes_a_new_id() -> None:
    log = Log()
    log.codes = [10]
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    (failed,) = producer.flush().values()
    assert isinstance(failed, ApiError)
    producer.add(record(b"b", partition=0))
    producer.flush()
    ((_, batch),) = log.batches
    assert (9, 0) == (batch.producer_id, batch.base_sequence)


def test_without_idempotence_a_lost_answer_is_not_repeated() -> None:
    log = Log()
    asked = []

    def lost(body: Any, version: int, address: tuple[str, int]) -> Any:
        asked.append(body)
        log.events.append(StreamEvent(log.opened[-1], "closed", reason="gone"))

    log.handlers["Produce"] = lost
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_LEADER))
    producer.add(record(b"a", partition=0))
    (failed,) = producer.flush().values()
    assert "gone" in str(failed)
    assert 1 == len(asked)


def test_an_idempotent_batch_is_repeated_after_a_lost_answer() -> None:
    log = Log()

    def lost(body: Any, version: int, address: tuple[str, int]) -> Any:
        log.handlers["Produce"] = log.produce
        log.events.append(StreamEvent(log.opened[-1], "closed", reason="gone"))

    log.handlers["Produce"] = lost
    producer = Producer(log.client())
    producer.add(record(b"a", partition=0))
    assert {P0: Produced(10, 1)} == producer.flush()


def test_acks_0_waits_for_nothing() -> None:
    log = Log()
    producer = Producer(log.client(), ProducerOptions(acks=ACKS_NONE))
    producer.add(record(b"a", partition=0))
    assert {P0: Produced(-1, 1)} == producer.flush()
    assert 1 == len(log.batches)
