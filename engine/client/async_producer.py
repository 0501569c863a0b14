"""The producer for asyncio: the same one, on a thread of its own.

```
send(record) ──> awaitable ──> taken by the thread ──> batch ──> response ──> place of the record
```

`send` returns at once with an awaitable, so many records are under way together; `await` it for
one, or `flush` for all. With a transactional id records are sent within `begin` and `commit` or
`abort`.

Source: KafkaProducer of 3.9.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple, TypeVar

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord, Producer, ProducerOptions
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import TransactionalProducer
from engine.errors import EngineError
from engine.host.owner_thread import OwnerThread
from engine.model import TopicPartition

T = TypeVar("T")
_WAIT_MS = 1_000


class StoredRecord(NamedTuple):
    """Where a record is; the offset is −1 where the broker does not return it (acks=0)."""

    partition: TopicPartition
    offset: int


class NoTransactions(EngineError):
    """A producer without a transactional id has no transactions."""

    hint = "set transactional.id"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs a transactional id")


class ProducerClosed(EngineError):
    """The producer was closed before the record had a result."""

    def __init__(self) -> None:
        super().__init__("the producer was closed before the record was stored")


class RecordAborted(EngineError):
    """The record was not sent: its transaction was aborted."""

    def __init__(self) -> None:
        super().__init__("the transaction was aborted before the record was sent")


class AsyncProducer:
    """Sends records from an event loop; `async with` sends all that is left, and closes it."""

    def __init__(
        self,
        client: KafkaClient,
        options: ProducerOptions | None = None,
        *,
        transactional_id: str | None = None,
    ) -> None:
        """The client is the producer's alone, on streams made by `RealStreams.wakeable`."""
        self._client = client
        self._transactions: TransactionalProducer | None = None
        if transactional_id is not None:
            self._transactions = TransactionalProducer(client, transactional_id, options)
        self._producer: Producer | TransactionalProducer = self._transactions or Producer(
            client, options
        )
        self._results: dict[int, Future[StoredRecord]] = {}
        self._next_place = 0
        self._thread = OwnerThread(
            "kctl-producer",
            interrupt=client.links.interrupt,
            proceed=client.links.proceed,
            idle=self._progress,
        )

    async def __aenter__(self) -> AsyncProducer:
        """Return the producer, initialized if it is transactional. Errors: those of that."""
        if self._transactions is not None:
            await self._call(self._transactions.init)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; an error within the block leaves an open transaction to its time-out."""
        await self.close()

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[StoredRecord]:
        """Send a record; the result is its place once it is stored.

        Errors: ApiError and others of the record, by the awaitable.
        """
        record = OutgoingRecord(topic, key, value, tuple(headers), timestamp_ms, partition)
        result: Future[StoredRecord] = Future()
        # Results are the producer's to give: nobody cancels a record that is under way.
        result.set_running_or_notify_cancel()
        self._thread.submit(lambda: self._add(record, result))
        return asyncio.wrap_future(result)

    async def flush(self) -> None:
        """Wait until every record that was sent has its result."""
        await self._call(lambda: self._settle(self._producer.flush()))

    async def begin(self) -> None:
        """Begin a transaction. Errors: NoTransactions, those of the producer."""
        await self._call(self._transactional("begin").begin)

    async def send_offsets(
        self, group: GroupMembership, offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Commit offsets of a group with the transaction. Errors: as `begin`."""
        transactions = self._transactional("send_offsets")
        await self._call(lambda: transactions.send_offsets(group, offsets))

    async def commit(self) -> None:
        """Send all that is left and commit the transaction. Errors: as `begin`."""
        transactions = self._transactional("commit")
        await self._call(lambda: self._settle(transactions.commit()))

    async def abort(self) -> None:
        """Abort the transaction; records that have not left fail. Errors: as `begin`."""
        transactions = self._transactional("abort")

        def abort() -> None:
            self._settle(transactions.abort())
            self._fail_all(RecordAborted())

        await self._call(abort)

    async def close(self) -> None:
        """Send all that is left outside of a transaction, end the thread and the connections."""
        try:
            if self._transactions is None:
                await self.flush()
        finally:
            await asyncio.to_thread(self._thread.close)
            self._client.links.close_streams()
            self._fail_all(ProducerClosed())

    def _transactional(self, action: str) -> TransactionalProducer:
        if self._transactions is None:
            raise NoTransactions(action)
        return self._transactions

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(work))

    # On the thread

    def _add(self, record: OutgoingRecord, result: Future[StoredRecord]) -> None:
        place, self._next_place = self._next_place, self._next_place + 1
        self._results[place] = result
        try:
            self._producer.add(record, place)
        except EngineError as error:
            del self._results[place]
            result.set_exception(error)

    def _progress(self) -> int | None:
        """Send what is due and take responses; wait for the next as long as no work comes."""
        if self._producer.is_idle:
            return None
        due_ms = self._producer.due_in_ms()
        try:
            self._settle(self._producer.poll(_WAIT_MS if due_ms is None else due_ms))
        except EngineError as error:
            self._fail_all(error)
            return None
        return 0

    def _fail_all(self, error: EngineError) -> None:
        results, self._results = self._results, {}
        for result in results.values():
            result.set_exception(error)

    def _settle(self, results: Sequence[BatchResult]) -> None:
        for done in results:
            partition = done.batch.partition
            for index, place in enumerate(done.batch.places):
                result = self._results.pop(place, None)
                if result is None:
                    continue
                if done.error is not None:
                    result.set_exception(done.error)
                else:
                    offset = done.base_offset + index if done.base_offset >= 0 else -1
                    result.set_result(StoredRecord(partition, offset))
