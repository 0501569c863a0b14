"""Transactions of one record as frames that are encoded before: a client that costs nothing."""

from __future__ import annotations

import time
from typing import Any, Final

from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
)
from engine.records.builder import BatchBuilder, BatchSettings
from engine.wire import messages
from tests.perf.group_load import OpenConnection, frame_of

#: The versions that librdkafka sends.
_ADD_VERSION: Final = 0
_PRODUCE_VERSION: Final = 9
_END_VERSION: Final = 1
_INIT_VERSION: Final = 3
_FIND_VERSION: Final = 3
_TRANSACTIONS: Final = 1
_TIMEOUT_S: Final = 60.0
_NOT_YET: Final = (
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS,
    CONCURRENT_TRANSACTIONS,
)
#: Where the only code of a response stands, from its end: of AddPartitionsToTxn and EndTxn.
_CODE_BYTES: Final = 2


class EncodedTransactions:
    """A producer of one transactional id, whose transactions write a record to one partition."""

    def __init__(self, address: str, transactional_id: str, topic: str, count: int) -> None:
        """Get a producer id, and encode so many transactions."""
        self._connection = OpenConnection(address)
        producer_id, epoch = self._begun(transactional_id)
        owner = (transactional_id, producer_id, epoch)
        self._add = _add_frame(*owner, topic)
        self._end = _end_frame(*owner)
        self._produces = [_produce_frame(*owner, topic, n) for n in reversed(range(count))]

    def _begun(self, transactional_id: str) -> tuple[int, int]:
        ask, end_s = self._connection.ask, time.monotonic() + _TIMEOUT_S
        find = messages.FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTIONS)
        init = messages.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        while time.monotonic() < end_s:
            if ask("FindCoordinator", _FIND_VERSION, find).error_code == 0:
                found = ask("InitProducerId", _INIT_VERSION, init)
                if found.error_code == 0:
                    return found.producer_id, found.producer_epoch
                assert found.error_code in _NOT_YET, found
            time.sleep(0.1)
        raise AssertionError("no coordinator")

    def run(self, count: int) -> int:
        """Commit so many of them; returns how often a partition could not be added yet."""
        refused = 0
        for _ in range(count):
            while self._code(self._add):
                refused += 1
            self._connection.send(self._produces.pop())
            self._connection.response()
            assert not self._code(self._end)
        return refused

    def _code(self, frame: bytes) -> int:
        """Send a request, and return the code that ends its response."""
        self._connection.send(frame)
        return int.from_bytes(self._connection.response()[-_CODE_BYTES:])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _add_frame(transactional_id: str, producer_id: int, epoch: int, topic: str) -> bytes:
    request = messages.AddPartitionsToTxnRequest
    return frame_of(
        "AddPartitionsToTxn",
        _ADD_VERSION,
        request(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[request.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        ),
    )


def _end_frame(transactional_id: str, producer_id: int, epoch: int) -> bytes:
    request = messages.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=True,
    )
    return frame_of("EndTxn", _END_VERSION, request)


def _produce_frame(
    transactional_id: str, producer_id: int, epoch: int, topic: str, sequence: int
) -> bytes:
    builder = BatchBuilder(
        BatchSettings(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
    )
    builder.append(round(time.time() * 1000), None, b"v" * 100)
    request: Any = messages.ProduceRequest
    data = request.PartitionProduceData(index=0, records=bytes(builder.build()))
    message = request(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[request.TopicProduceData(name=topic, partition_data=[data])],
    )
    return frame_of("Produce", _PRODUCE_VERSION, message)
