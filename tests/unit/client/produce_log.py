"""A scripted cluster that keeps what is produced, as a broker with producer state does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from engine.client.batch_sender import IN_FLIGHT_MAX, BatchResult
from engine.client.producing import OutgoingRecord
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.view import batches_in
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OUT_OF_ORDER, DUPLICATE, TOO_LARGE, NOT_LEADER = 45, 46, 10, 6


class ProduceLog(FakeCluster):
    """A cluster that checks sizes and sequences, and fails as it is told.

    `codes` are what the next batches are answered with, 0 for what is right; `on_batch` is
    called before each.
    """

    def __init__(self, *, size_bytes_max: int = 1 << 30) -> None:
        super().__init__()
        self.size_bytes_max = size_bytes_max
        self.batches: list[tuple[TopicPartition, BatchView]] = []
        self.codes: list[int] = []
        self.requested_codes: list[int] = []
        self.on_batch: Callable[[], None] = lambda: None
        self._next: dict[tuple[TopicPartition, int], int] = {}
        self._stored: dict[tuple[TopicPartition, int], deque[tuple[int, int]]] = {}
        self.handlers["Produce"] = self.produce
        self.handlers["InitProducerId"] = lambda *_: message_class("InitProducerIdResponse")(
            producer_id=7 + self.requested_apis().count("InitProducerId"), producer_epoch=0
        )

    def values(self, partition: TopicPartition) -> list[bytes | None]:
        """Return the values that a partition holds."""
        return [r.value for p, batch in self.batches if p == partition for r in batch.records()]

    def has_stored(self, body: Any) -> bool:
        """Return whether a batch of a request is stored, of which the producer may not know."""
        stored = {bytes(batch.raw) for _, batch in self.batches}
        return any(
            bytes(data.records) in stored
            for topic in body.topic_data
            for data in topic.partition_data
        )

    def produce(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("ProduceResponse")
        rows = []
        for topic in body.topic_data:
            row = response.TopicProduceResponse(name=topic.name)
            for data in topic.partition_data:
                self.on_batch()
                partition = TopicPartition(topic.name, data.index)
                code = self._take(partition, bytes(data.records))
                self.requested_codes.append(code)
                row.partition_responses.append(
                    response.PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=len(self.batches) * 10
                    )
                )
            rows.append(row)
        return None if body.acks == 0 else response(responses=rows)

    def _take(self, partition: TopicPartition, data: bytes) -> int:
        code = self.codes.pop(0) if self.codes else 0
        if code:
            return code
        if self.leaders[partition] < 0:
            return NOT_LEADER
        if len(data) > self.size_bytes_max:
            return TOO_LARGE
        (batch,) = batches_in(memoryview(data), allow_partial_tail=False)
        assert isinstance(batch, BatchView)
        if batch.producer_id >= 0:
            key = (partition, batch.producer_id)
            expected = self._next.get(key, batch.base_sequence)
            sequences = (batch.base_sequence, batch.record_count)
            stored = self._stored.setdefault(key, deque(maxlen=IN_FLIGHT_MAX))
            if sequences in stored:
                return DUPLICATE
            # Also a part of what is stored. Source: ProducerAppendInfo.checkSequence.
            if batch.base_sequence != expected:
                return OUT_OF_ORDER
            self._next[key] = batch.base_sequence + batch.record_count
            stored.append(sequences)
        self.batches.append((partition, batch))
        return 0


def record(value: bytes, **fields: Any) -> OutgoingRecord:
    """Return a record without a key."""
    return OutgoingRecord("t", None, value, **fields)


def seen(results: list[BatchResult]) -> list[tuple[TopicPartition, int, int, str | None]]:
    """Return results as partition, base offset, record count and error name."""
    return [
        (
            r.batch.partition,
            r.base_offset,
            r.batch.record_count,
            None if r.error is None else getattr(r.error, "name", type(r.error).__name__),
        )
        for r in results
    ]
