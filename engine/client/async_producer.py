"""The producer for asyncio: the blocking producer on a thread of its own.

```
send(record) ──> awaitable ──> queue of the thread ──> batch ──> response ──> partition, offset
```

`send` returns at once with an awaitable, so that many records are in flight; `await` it for
one record, or `flush` for all. With a transactional id, records are sent between `begin` and
`commit` or `abort`. Each record gets a result: a dropped record the error for which it was dropped.

After a failed batch, its partition accepts records again, as in Java's producer.

Source: KafkaProducer of 3.9.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, TypeVar

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord, Producer, ProducerOptions
from engine.client.send_buffer import SendBuffer, Waiter, size_of_record
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import TransactionalProducer
from engine.errors import EngineError
from engine.host.owner_thread import OwnerThread
from engine.limits import SEND_BUFFER_BYTES
from engine.model import TopicPartition

T = TypeVar("T")
_WAIT_MS = 1_000
_LEAST_BYTES = 1


class StoredRecord(NamedTuple):
    """Partition and offset of a stored record; −1 where the broker returns none (acks=0)."""

    partition: TopicPartition
    offset: int


class NoTransactions(EngineError):
    """A producer without a transactional id has no transactions."""

    hint = "set transactional.id"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs a transactional id")


class ProducerClosed(EngineError):
    """The producer was closed, so nothing is sent any more."""

    def __init__(self) -> None:
        super().__init__("the producer is closed: what was not stored is not sent")


class RecordAborted(EngineError):
    """The record was not sent: its transaction was aborted."""

    def __init__(self) -> None:
        super().__init__("the transaction was aborted before the record was sent")


class AsyncProducer:
    """Sends records from an event loop.

    Leaving `async with` sends the queued records and closes the producer.
    """

    def __init__(
        self,
        client: KafkaClient,
        options: ProducerOptions | None = None,
        *,
        transactional_id: str | None = None,
    ) -> None:
        """Create a producer and its thread; nothing is requested yet.

        Only this producer may use `client`, whose streams are made by `RealStreams.wakeable`.
        """
        self._client = client
        options = (options or ProducerOptions())._replace(goes_on=True)
        total_bytes = options.buffer_bytes or SEND_BUFFER_BYTES
        #: Bounds the bytes of records without a result; a `send` waits for room in it.
        self._buffer = SendBuffer(total_bytes, options.max_block_ms)
        #: The producer if there is a transactional id, else None; used on `_thread` alone.
        self._transactions: TransactionalProducer | None = None
        if transactional_id is not None:
            self._transactions = TransactionalProducer(client, transactional_id, options)
        self._producer: Producer | TransactionalProducer = self._transactions or Producer(
            client, options
        )
        #: The future of each record without a result, by the record's number.
        self._results: dict[int, Future[StoredRecord]] = {}
        #: Number of the next record; it comes back with the record's batch.
        self._next_place = 0
        #: The last error of a call on the thread: records that were dropped fail with it. None once
        #: every record has its result.
        self._failure: EngineError | None = None
        self._is_closed = False
        #: Tasks of records that wait for room, referenced here until they end.
        self._later: set[asyncio.Task[StoredRecord]] = set()
        self._thread = OwnerThread(
            "kctl-producer",
            interrupt=client.connections.interrupt,
            proceed=client.connections.proceed,
            idle=self._make_progress,
        )

    async def __aenter__(self) -> AsyncProducer:
        """Return this producer for `async with`; a transactional one is initialized first.

        Raises the errors of `TransactionalProducer.init`; the producer is then closed.
        """
        if self._transactions is not None:
            try:
                await self._call(self._transactions.init)
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the producer; a transaction that an error left open is aborted by its timeout."""
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
        """Send a record; the result is its partition and offset once it is stored.

        If records without a result fill `buffer_bytes`, the record waits for room, in order: await
        the result, or `room` before the next record. Raises ProducerClosed and RecordAboveBuffer;
        the awaitable raises BufferExhausted, ApiError and other errors of the record.
        """
        if self._is_closed:
            raise ProducerClosed
        record = OutgoingRecord(topic, key, value, tuple(headers), timestamp_ms, partition)
        size_bytes = size_of_record(key, value, record.headers)
        if self._buffer.try_hold(size_bytes):
            return asyncio.wrap_future(self._send_held(record, size_bytes))
        waiter = self._buffer.enter(size_bytes, lambda: self._send_held(record, size_bytes))
        task = asyncio.ensure_future(self._send_later(waiter))
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        # Also of a task that was cancelled before it began.
        task.add_done_callback(lambda _done: self._buffer.leave(waiter))
        return task

    async def room(self) -> None:
        """Wait until the buffer has room for a small record and no earlier record waits for room.

        An application that sends faster than the brokers store awaits this between records. Raises
        BufferExhausted.
        """
        if self._buffer.try_hold(_LEAST_BYTES):
            self._buffer.release(_LEAST_BYTES)
            return
        self._submit(self._producer.send_without_linger)
        waiter = self._buffer.enter(_LEAST_BYTES, lambda: self._buffer.release(_LEAST_BYTES))
        try:
            await self._buffer.await_admission(waiter)
        finally:
            self._buffer.leave(waiter)

    async def _send_later(self, waiter: Waiter[Future[StoredRecord]]) -> StoredRecord:
        """Wait until the buffer admits a record; return its partition and offset once it is stored.

        The buffered records are sent now, without linger, because only they can make room.
        """
        self._submit(self._producer.send_without_linger)
        stored = await self._buffer.await_admission(waiter)
        return await asyncio.wrap_future(stored)

    def _send_held(self, record: OutgoingRecord, size_bytes: int) -> Future[StoredRecord]:
        """Hand a record to the producer's thread; return the future of its place in the log.

        The caller has reserved `size_bytes` in the buffer; they are released when the future is
        done.

        Raises ProducerClosed if the thread no longer accepts work.
        """
        result: Future[StoredRecord] = Future()
        # A record that was accepted cannot be cancelled by its caller.
        result.set_running_or_notify_cancel()
        loop = asyncio.get_running_loop()

        def release(_done: object) -> None:
            """Release the waiter's room in the buffer."""
            # After the loop has ended no record waits for room.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._buffer.release, size_bytes)

        result.add_done_callback(release)
        try:
            self._submit(lambda: self._add(record, result))
        except ProducerClosed:
            self._buffer.release(size_bytes)
            raise
        return result

    async def flush(self) -> None:
        """Wait until each sent record has its result, including records that wait for room.

        Raises an error that prevents all records from being sent; the records fail with it, too.
        """
        while self._later:
            await self._call(self._flush)
            # Records with a result make room in the buffer for those of `_later`.
            if self._later:
                await asyncio.wait(
                    self._later, timeout=_WAIT_MS / 1000, return_when="FIRST_COMPLETED"
                )
        await self._call(self._flush)

    async def begin(self) -> None:
        """Begin a transaction. Raises NoTransactions and the errors of the producer."""
        await self._call(self._transactional("begin").begin)

    async def send_offsets(
        self, group: GroupMembership, offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Commit offsets of a group with the transaction. Raises the errors of `begin`."""
        transactions = self._transactional("send_offsets")
        await self._call(lambda: transactions.send_offsets(group, offsets))

    async def commit(self) -> None:
        """Send all queued records and commit the transaction. Raises the errors of `begin`."""
        transactions = self._transactional("commit")
        await self._call(lambda: self._complete_futures(transactions.commit()))

    async def abort(self) -> None:
        """Abort the transaction.

        Its records that were not sent yet fail. Raises the errors of `begin`.
        """
        transactions = self._transactional("abort")

        def abort() -> None:
            self._complete_futures(transactions.abort())
            self._fail_all(RecordAborted())

        await self._call(abort)

    async def close(self) -> None:
        """Send the queued records, except those of an open transaction.

        Then end the thread and the connections.
        """
        if self._is_closed:
            await asyncio.to_thread(self._thread.close)
            return
        self._is_closed = True
        try:
            if self._transactions is None:
                await self.flush()
        finally:
            self._buffer.fail_waiting(ProducerClosed())
            # Also where the caller is cancelled: nothing else would end the thread.
            await asyncio.shield(asyncio.to_thread(self._end))

    def _end(self) -> None:
        """End the thread, close the connections, and fail the records without a result."""
        self._thread.close()
        self._client.connections.close_streams()
        self._fail_all(ProducerClosed())

    def _transactional(self, action: str) -> TransactionalProducer:
        """Return the transactional producer; raise NoTransactions without a transactional id.

        `action` is the called method, which the error names.
        """
        if self._transactions is None:
            raise NoTransactions(action)
        return self._transactions

    async def _call(self, work: Callable[[], T]) -> T:
        """Run `work` on the producer's thread; return its result or raise its error.

        An EngineError is kept as `_failure`: records that the producer drops because of it fail
        with it.
        """

        def run_and_note() -> T:
            """Run `work`; keep its EngineError as `_failure`, with which dropped records fail."""
            try:
                return work()
            except EngineError as error:
                self._failure = error
                raise

        return await asyncio.wrap_future(self._submit(run_and_note))

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work` for the producer's thread.

        Raises ProducerClosed once the thread has ended.
        """
        try:
            return self._thread.submit(work)
        except RuntimeError as error:
            raise ProducerClosed from error

    # On the thread

    def _add(self, record: OutgoingRecord, result: Future[StoredRecord]) -> None:
        """Add a record to its batch, on the producer's thread.

        `result` is completed when it is stored. An error of the addition itself, for instance of a
        record that is too large, goes to `result`.
        """
        place, self._next_place = self._next_place, self._next_place + 1
        self._results[place] = result
        try:
            self._producer.add(record, place)
        except Exception as error:
            # Any exception: only the record's future reports it to the caller.
            if isinstance(error, EngineError):
                self._failure = error
            del self._results[place]
            result.set_exception(error)

    def _flush(self) -> None:
        """Send all records and complete their futures; discard unsent records after an error."""
        try:
            self._complete_futures(self._producer.flush())
        except EngineError:
            self._producer.discard()
            raise

    def _make_progress(self) -> int | None:
        """Send due batches and process responses; return after how many ms to call this again.

        The thread calls this while no other work is queued. None: no record is queued or in flight.
        """
        if self._producer.is_idle:
            # The records left were dropped by the producer: no batch will return a result for them.
            self._fail_all(self._failure or RecordAborted())
            self._failure = None
            return None
        due_ms = 0 if self._buffer.is_wanted else self._producer.due_in_ms()
        if due_ms and not self._producer.is_sending:
            return due_ms
        try:
            if self._buffer.is_wanted:
                self._producer.send_without_linger()
                due_ms = None
            self._complete_futures(self._producer.poll(_WAIT_MS if due_ms is None else due_ms))
        except EngineError as error:
            self._failure = error
            self._producer.discard()
        except BaseException as error:
            self._fail_all(error)
            raise
        return 0

    def _fail_all(self, error: BaseException) -> None:
        """Fail the future of each record that has no result yet with `error`."""
        results, self._results = self._results, {}
        for result in results.values():
            result.set_exception(error)

    def _complete_futures(self, results: Sequence[BatchResult]) -> None:
        """Complete the futures of the records in finished batches.

        A record has offset -1 where the broker returned none (acks=0, or a duplicate).
        """
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
