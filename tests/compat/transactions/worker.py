"""A transactional producer of one of Python's clients, which does what it reads on stdin.

    python -m tests.compat.transactions.worker CLIENT BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS

Commands: `init`, `begin`, `send TOPIC PARTITION VALUE`, `offsets GROUP TOPIC PARTITION OFFSET`,
`commit`, `abort`. Each is answered by a line: `ok`, or `error NAME`. It ends with its input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

_CALL_S: Final = 30.0
_CALL_MS: Final = int(_CALL_S * 1000)


class Worker(Protocol):
    """What a client does in a transaction; whatever it raises is the answer to the command."""

    def init(self) -> None:
        """Get a producer id and its epoch, which fences earlier producers of the same id."""
        ...

    def begin(self) -> None:
        """Begin a transaction."""
        ...

    def send(self, topic: str, partition: str, value: str) -> None:
        """Send a record, and return when it is acknowledged."""
        ...

    def offsets(self, group: str, topic: str, partition: str, offset: str) -> None:
        """Commit an offset of a group within the transaction."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def abort(self) -> None:
        """Abort the transaction."""
        ...


class ConfluentWorker:
    """The producer of confluent-kafka."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from confluent_kafka import Consumer, Producer

        self._bootstrap = bootstrap
        self._consumer_class = Consumer
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )

    def init(self) -> None:
        """Get a producer id."""
        self._producer.init_transactions(_CALL_S)

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def send(self, topic: str, partition: str, value: str) -> None:
        """Send a record; raises KafkaException where it is not delivered."""
        from confluent_kafka import KafkaException

        failures: list[Any] = []
        self._producer.produce(
            topic,
            value.encode(),
            partition=int(partition),
            on_delivery=lambda error, _: failures.append(error) if error is not None else None,
        )
        if self._producer.flush(_CALL_S):
            raise TimeoutError
        if failures:
            raise KafkaException(failures[0])

    def offsets(self, group: str, topic: str, partition: str, offset: str) -> None:
        """Commit an offset of a group."""
        from confluent_kafka import TopicPartition

        consumer = self._consumer_class(
            {"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0}
        )
        try:
            self._producer.send_offsets_to_transaction(
                [TopicPartition(topic, int(partition), int(offset))],
                consumer.consumer_group_metadata(),
                _CALL_S,
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        """Commit; a call that ran out of time goes on, as the client requires it."""
        from confluent_kafka import KafkaException

        try:
            self._producer.commit_transaction(_CALL_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            self._producer.commit_transaction(_CALL_S)

    def abort(self) -> None:
        """Abort."""
        self._producer.abort_transaction(_CALL_S)


class KafkaPythonWorker:
    """The producer of kafka-python."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=_CALL_MS,
        )

    def init(self) -> None:
        """Get a producer id."""
        self._producer.init_transactions()

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin_transaction()

    def send(self, topic: str, partition: str, value: str) -> None:
        """Send a record."""
        future = self._producer.send(topic, value.encode(), partition=int(partition))
        future.get(_CALL_S)

    def offsets(self, group: str, topic: str, partition: str, offset: str) -> None:
        """Commit an offset of a group."""
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        position = OffsetAndMetadata(int(offset), "", -1)
        self._producer.send_offsets_to_transaction(
            {TopicPartition(topic, int(partition)): position}, group
        )

    def commit(self) -> None:
        """Commit."""
        self._producer.commit_transaction()

    def abort(self) -> None:
        """Abort."""
        self._producer.abort_transaction()


class AiokafkaWorker:
    """The producer of aiokafka."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._settings = (bootstrap, transactional_id, timeout_ms)
        self._producer: Any = None

    def _run(self, coroutine: Any) -> None:
        self._loop.run_until_complete(asyncio.wait_for(coroutine, _CALL_S))

    async def _start(self) -> None:
        from aiokafka import AIOKafkaProducer

        bootstrap, transactional_id, timeout_ms = self._settings
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await self._producer.start()

    def init(self) -> None:
        """Get a producer id."""
        self._run(self._start())

    def begin(self) -> None:
        """Begin a transaction."""
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, partition: str, value: str) -> None:
        """Send a record."""
        sent = self._producer.send_and_wait(topic, value.encode(), partition=int(partition))
        self._run(sent)

    def offsets(self, group: str, topic: str, partition: str, offset: str) -> None:
        """Commit an offset of a group."""
        from aiokafka import TopicPartition

        position = {TopicPartition(topic, int(partition)): int(offset)}
        self._run(self._producer.send_offsets_to_transaction(position, group))

    def commit(self) -> None:
        """Commit."""
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        """Abort."""
        self._run(self._producer.abort_transaction())


_WORKERS: Final[dict[str, Callable[[str, str, int], Worker]]] = {
    "confluent": ConfluentWorker,
    "kafka-python": KafkaPythonWorker,
    "aiokafka": AiokafkaWorker,
}


def _name_of(error: Exception) -> str:
    """Return the name of an error, of librdkafka that of its code."""
    detail = error.args[0] if error.args else None
    name = getattr(detail, "name", None)
    return name() if callable(name) else type(error).__name__


def main() -> None:
    """Answer the commands of stdin."""
    client, bootstrap, transactional_id, timeout_ms = sys.argv[1:]
    worker = _WORKERS[client](bootstrap, transactional_id, int(timeout_ms))
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            getattr(worker, command)(*arguments)
        except Exception as error:
            print(repr(error), file=sys.stderr, flush=True)
            print(f"error {_name_of(error)}", flush=True)
        else:
            print("ok", flush=True)


if __name__ == "__main__":
    main()
