"""A process that copies an input topic exactly once: by librdkafka or by the project's own client.

    python -m tests.soak.copying_worker librdkafka BOOTSTRAP GROUP TRANSACTIONAL_ID INPUT SEED

Contexts of librdkafka's `debug` may follow; their lines go to standard error.

One transaction has the records of one poll: at most 750 of librdkafka's, some of which are aborted
on purpose, and 500 of our own client's. The process ends with 1 where its producer is fenced or
fails for good; the soak starts it again.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord
from engine.client.settings import parse_addresses
from engine.demo.copying import CopyingInstance, CopyNames, Part
from engine.errors import EngineError
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from tests.soak.copied_topics import OUTPUTS, key_of

RECORDS_PER_TRANSACTION: Final = 750
_ABORTED_SHARE: Final = 0.1
_TIMEOUT_S: Final = 30.0
_LOG_DEBUG: Final = 7


class WorkerNames(NamedTuple):
    """Where a worker reads, and the names by which it writes."""

    address: str
    group_id: str
    transactional_id: str
    input_topic: str
    seed: int
    debug: str = ""


class LibrdkafkaWorker:
    """A consumer and a transactional producer of librdkafka."""

    def __init__(self, names: WorkerNames) -> None:
        """Fences what an earlier process of this worker left, and joins the group."""
        self._names = names
        self._random = random.Random(names.seed)
        common: dict[str, Any] = {"bootstrap.servers": names.address, "log_level": 0}
        if names.debug:
            common |= {"log_level": _LOG_DEBUG, "debug": names.debug}
        self._producer = Producer(
            {
                **common,
                "transactional.id": names.transactional_id,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 2,
            }
        )
        self._producer.init_transactions(_TIMEOUT_S)
        self._consumer = Consumer(
            {
                **common,
                "group.id": names.group_id,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )
        self._consumer.subscribe([names.input_topic])

    def step(self) -> None:
        """Copy the records that have come, if any. Errors: KafkaException that is fatal."""
        messages = [
            message
            for message in self._consumer.consume(RECORDS_PER_TRANSACTION, 0.2)
            if message.error() is None
        ]
        if not messages:
            return
        try:
            self._copy(messages)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.fatal():
                raise
            self._go_back()

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        offsets: dict[int, int] = {}
        for message in messages:
            partition, value = int(message.partition() or 0), message.value()
            number = int(value or b"")
            for topic in OUTPUTS:
                self._produce(topic, partition, number)
            offsets[partition] = int(message.offset() or 0) + 1
        if self._random.random() < _ABORTED_SHARE:
            self._go_back()
            return
        topic = self._names.input_topic
        self._producer.send_offsets_to_transaction(
            [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()],
            self._consumer.consumer_group_metadata(),
            _TIMEOUT_S,
        )
        while True:
            try:
                self._producer.commit_transaction(_TIMEOUT_S)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise

    def _produce(self, topic: str, partition: int, number: int) -> None:
        while True:
            try:
                self._producer.produce(topic, b"%d" % number, key_of(number), partition=partition)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _go_back(self) -> None:
        """Abort, and begin again at what is committed."""
        while True:
            try:
                self._producer.abort_transaction(_TIMEOUT_S)
                break
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
        partitions = self._consumer.assignment()
        if partitions:
            for place in self._consumer.committed(partitions, _TIMEOUT_S):
                offset = place.offset if place.offset >= 0 else 0
                self._consumer.seek(TopicPartition(place.topic, place.partition, offset))


class _Instance(CopyingInstance):
    """The demo's instance, with the outputs of this soak."""

    def outgoing(self, part: Part) -> Iterator[OutgoingRecord]:
        """Yield each number for each of the outputs."""
        partition = part.partition.partition
        for value in part.run.values:
            number = int(value or b"")
            for topic in OUTPUTS:
                yield OutgoingRecord(topic, key_of(number), b"%d" % number, (), None, partition)


class OwnWorker:
    """The project's own consumer and transactional producer."""

    def __init__(self, names: WorkerNames) -> None:
        """Fences what an earlier process of this worker left, and joins the group."""

        def connect() -> KafkaClient:
            return KafkaClient(
                parse_addresses(names.address),
                streams=RealStreams(),
                clock=RealClock(),
                entropy=RealEntropy(),
            )

        copy_names = CopyNames(
            names.input_topic, OUTPUTS[0], names.group_id, names.transactional_id, instance=0
        )
        self._instance = _Instance(connect, copy_names)

    def step(self) -> None:
        """Copy the records that have come, if any. Errors: EngineError that ends the worker."""
        self._instance.step(200)


def main() -> int:
    """Copy until the process is killed."""
    client, address, group_id, transactional_id, input_topic, seed, *debug = sys.argv[1:]
    names = WorkerNames(address, group_id, transactional_id, input_topic, int(seed), *debug)
    kind = LibrdkafkaWorker if client == "librdkafka" else OwnWorker
    try:
        worker = kind(names)
        while True:
            worker.step()
    except (EngineError, KafkaException) as error:
        print(f"{transactional_id}: {error!r}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
