"""The consumer for asyncio: the blocking consumer on a thread of its own.

Each method is a coroutine that does not block the event loop. Between polls the thread sends
heartbeats, so that an application may process records for up to `max_poll_interval_ms`. A call
interrupts the wait of a running poll; the poll continues after the call.

Records count as processed once a later poll begins, if the application has received them: the
records of a cancelled poll, and those that `async for` has not yielded, are returned by the next
poll.

Source: KafkaConsumer, AbstractCoordinator.HeartbeatThread of 3.9.1.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TypeVar

from engine.client.blocking import KafkaClient
from engine.client.buffered_records import ConsumerRecord
from engine.client.consumer import Consumer
from engine.client.consumer_heartbeat import SubscriptionPattern
from engine.client.consumer_settings import CLOSE_TIMEOUT_MS, ConsumerSettings
from engine.client.errors import ClientCloses, may_pass
from engine.client.rebalance_listener import RebalanceListener
from engine.errors import EngineError
from engine.host.owner_thread import OwnerThread
from engine.model import TopicPartition

T = TypeVar("T")
_POLL_MS = 1_000


class ConsumerClosed(EngineError):
    """The consumer was closed, so nothing is read any more."""

    def __init__(self) -> None:
        super().__init__("the consumer is closed")


class AsyncConsumer:
    """Reads records in an event loop; `async with` closes it.

    The listener of a subscription is called on the consumer's thread, where it may use `blocking`
    to commit and to seek. Errors of all calls: ConsumerClosed.
    """

    def __init__(self, client: KafkaClient, settings: ConsumerSettings | None = None) -> None:
        """Create a consumer and its thread; nothing is requested yet.

        Only this consumer may use `client`, whose streams are made by `RealStreams.wakeable`.
        """
        self._client = client
        #: Used on `_thread` alone.
        self._consumer = Consumer(client, settings)
        #: Error of a heartbeat between two polls; the next poll raises it. None without one.
        self._failure: Exception | None = None
        #: How many heartbeats between polls have failed in a row.
        self._failed_heartbeats = 0
        #: Records of the last poll that `async for` has not returned yet; put back at the close.
        self._unread: deque[ConsumerRecord] = deque()
        self._is_closed = False
        self._thread = OwnerThread(
            "kctl-consumer",
            interrupt=client.connections.interrupt,
            proceed=client.connections.proceed,
            idle=self._send_heartbeat_if_due,
        )

    async def __aenter__(self) -> AsyncConsumer:
        """Return this consumer for `async with`; nothing is requested yet."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the consumer as `close` does, also after an error of the block."""
        await self.close()

    @property
    def blocking(self) -> Consumer:
        """Return the blocking consumer, for a rebalance listener that has to commit or seek.

        A listener is called on the consumer's thread, where it cannot await the methods of this
        class.
        """
        return self._consumer

    async def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Run `Consumer.subscribe` on the consumer's thread."""
        await self._call(lambda: self._consumer.subscribe(topics, listener))

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Run `Consumer.assign` on the consumer's thread."""
        await self._call(lambda: self._consumer.assign(partitions))

    async def unsubscribe(self) -> None:
        """Run `Consumer.unsubscribe` on the consumer's thread."""
        await self._call(self._consumer.unsubscribe)

    async def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """Return records, after about `timeout_ms` at the latest.

        An empty list means that none arrived in time. Raises the errors of `Consumer.poll`.
        """
        deadline_ms = self._client.clock.monotonic_ms() + timeout_ms
        while True:
            left_ms = max(deadline_ms - self._client.clock.monotonic_ms(), 0)
            records = await self._poll_once(left_ms)
            # Another call may have ended its waiting.
            if records or self._client.clock.monotonic_ms() >= deadline_ms:
                return records

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records without end; poll when the records of the last poll are used up."""
        while True:
            self._unread = deque(await self.poll(_POLL_MS))
            while self._unread:
                yield self._unread.popleft()

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        """Run `Consumer.seek` on the consumer's thread."""
        await self._call(lambda: self._consumer.seek(partition, offset))

    async def seek_to_beginning(self, partitions: Collection[TopicPartition]) -> None:
        """Run `Consumer.seek_to_beginning` on the consumer's thread."""
        await self._call(lambda: self._consumer.seek_to_beginning(partitions))

    async def seek_to_end(self, partitions: Collection[TopicPartition]) -> None:
        """Run `Consumer.seek_to_end` on the consumer's thread."""
        await self._call(lambda: self._consumer.seek_to_end(partitions))

    async def position(self, partition: TopicPartition) -> int:
        """Run `Consumer.position` on the consumer's thread."""
        return await self._call(lambda: self._consumer.position(partition))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Run `Consumer.pause` on the consumer's thread."""
        await self._call(lambda: self._consumer.pause(partitions))

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Run `Consumer.resume` on the consumer's thread."""
        await self._call(lambda: self._consumer.resume(partitions))

    async def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are assigned to this consumer now."""
        return await self._call(lambda: self._consumer.assignment)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Run `Consumer.commit` on the consumer's thread."""
        await self._call(lambda: self._consumer.commit(offsets))

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Run `Consumer.committed` on the consumer's thread."""
        return await self._call(lambda: self._consumer.committed(partitions))

    async def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Commit, leave the group, end the thread and close the connections, within `timeout_ms`.

        A poll that waits for a rebalance ends with ConsumerClosed; so does every later call.
        """
        if self._is_closed:
            await asyncio.to_thread(self._thread.close)
            return
        self._is_closed = True
        self._client.connections.begin_closing(self._client.clock.monotonic_ms() + timeout_ms)
        try:
            await self._call(lambda: self._consumer.close(timeout_ms))
        finally:
            # Also where the caller is cancelled: nothing else would end the thread.
            await asyncio.shield(asyncio.to_thread(self._end))

    def _end(self) -> None:
        """End the consumer's thread, then close the connections that the thread used."""
        self._thread.close()
        self._client.connections.close_streams()

    async def _call(self, work: Callable[[], T]) -> T:
        """Run `work` on the consumer's thread, which alone may use the consumer; return its result.

        Raises the errors of `work`, and ConsumerClosed after `close`.
        """
        return await asyncio.wrap_future(self._submit(work))

    async def _poll_once(self, timeout_ms: int) -> list[ConsumerRecord]:
        """Return the records of one poll on the consumer's thread.

        Empty if none came in `timeout_ms`. If the caller is cancelled, the polled records are put
        back, so that the next poll returns them.
        """
        polled = self._submit(partial(self._poll, timeout_ms))
        try:
            return await asyncio.wrap_future(polled)
        except asyncio.CancelledError:
            # The poll may have records already, or get some before it ends: both are put back.
            with suppress(ConsumerClosed):
                self._submit(partial(self._put_back_polled, polled))
            raise

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue `work` for the consumer's thread; return the future of its result.

        Records of the last poll that `async for` has not yielded are put back first: so a commit
        covers only records that the application got. Raises ConsumerClosed.
        """
        unread, self._unread = self._unread, deque()
        try:
            if unread:
                self._thread.submit(partial(self._consumer.put_back, unread))
            return self._thread.submit(work)
        except RuntimeError as error:
            raise ConsumerClosed from error

    # On the thread

    def _put_back_polled(self, polled: Future[list[ConsumerRecord]]) -> None:
        """Put the records of a finished poll back into the consumer, whose next poll returns them.

        Runs after the caller of the poll was cancelled, and so did not get them.
        """
        if not polled.cancelled() and polled.exception() is None:
            self._consumer.put_back(polled.result())

    def _poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """Return the blocking consumer's polled records; runs on the consumer's thread.

        Raises first the error of a heartbeat that failed since the last poll; ConsumerClosed if the
        client closes meanwhile.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        try:
            return self._consumer.poll(timeout_ms)
        except ClientCloses as error:
            raise ConsumerClosed from error

    def _send_heartbeat_if_due(self) -> int | None:
        """Send a heartbeat to the group coordinator if it is due.

        The thread calls this between two calls of its methods. Returns after how many ms to call
        this again, None for never. After a retriable error the heartbeat is sent again after a
        back-off. Any other error ends the heartbeats, and the next poll raises it.
        """
        if self._failure is not None:
            return None
        try:
            left_ms = self._consumer.heartbeat()
        except Exception as error:
            if not isinstance(error, EngineError) or not may_pass(error):
                self._failure = error
                return None
            self._failed_heartbeats += 1
            return self._client.backoff_ms(self._failed_heartbeats - 1)
        self._failed_heartbeats = 0
        return left_ms
