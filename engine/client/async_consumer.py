"""The consumer for asyncio: the same one, on a thread of its own.

Each method is a coroutine that waits without holding the loop. Between polls the thread sends
heartbeats, so that an application may take its time with records: up to `max_poll_interval_ms`.
A call ends the waiting of a poll that goes on, which returns to waiting behind it.

Source: KafkaConsumer, AbstractCoordinator.HeartbeatThread of 3.9.1.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TypeVar

from engine.client.blocking import KafkaClient
from engine.client.consumer import (
    Consumer,
    ConsumerSettings,
    RebalanceListener,
)
from engine.client.waiting_records import ConsumerRecord
from engine.errors import EngineError
from engine.host.owner_thread import OwnerThread
from engine.model import TopicPartition

T = TypeVar("T")
_POLL_MS = 1_000


class AsyncConsumer:
    """Reads records in an event loop; `async with` closes it.

    The listener of a subscription is called on the consumer's thread.
    """

    def __init__(self, client: KafkaClient, settings: ConsumerSettings | None = None) -> None:
        """The client is the consumer's alone, on streams made by `RealStreams.wakeable`."""
        self._client = client
        self._consumer = Consumer(client, settings)
        self._failure: EngineError | None = None
        self._thread = OwnerThread(
            "kctl-consumer",
            interrupt=client.links.interrupt,
            proceed=client.links.proceed,
            idle=self._heartbeat,
        )

    async def __aenter__(self) -> AsyncConsumer:
        """Return the consumer; nothing is requested yet."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    async def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """As `Consumer.subscribe`."""
        await self._call(lambda: self._consumer.subscribe(topics, listener))

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """As `Consumer.assign`."""
        await self._call(lambda: self._consumer.assign(partitions))

    async def unsubscribe(self) -> None:
        """As `Consumer.unsubscribe`."""
        await self._call(self._consumer.unsubscribe)

    async def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """Return records, after about `timeout_ms` at the latest; errors as `Consumer.poll`."""
        deadline_ms = self._client.clock.monotonic_ms() + timeout_ms
        while True:
            left_ms = max(deadline_ms - self._client.clock.monotonic_ms(), 0)
            records = await self._call(partial(self._poll, left_ms))
            # Another call may have ended its waiting.
            if records or self._client.clock.monotonic_ms() >= deadline_ms:
                return records

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yield records for ever."""
        while True:
            for record in await self.poll(_POLL_MS):
                yield record

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        """As `Consumer.seek`."""
        await self._call(lambda: self._consumer.seek(partition, offset))

    async def seek_to_beginning(self, partitions: Collection[TopicPartition]) -> None:
        """As `Consumer.seek_to_beginning`."""
        await self._call(lambda: self._consumer.seek_to_beginning(partitions))

    async def seek_to_end(self, partitions: Collection[TopicPartition]) -> None:
        """As `Consumer.seek_to_end`."""
        await self._call(lambda: self._consumer.seek_to_end(partitions))

    async def position(self, partition: TopicPartition) -> int:
        """As `Consumer.position`."""
        return await self._call(lambda: self._consumer.position(partition))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """As `Consumer.pause`."""
        await self._call(lambda: self._consumer.pause(partitions))

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """As `Consumer.resume`."""
        await self._call(lambda: self._consumer.resume(partitions))

    async def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions that are read now."""
        return await self._call(lambda: self._consumer.assignment)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """As `Consumer.commit`."""
        await self._call(lambda: self._consumer.commit(offsets))

    async def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """As `Consumer.committed`."""
        return await self._call(lambda: self._consumer.committed(partitions))

    async def close(self) -> None:
        """Commit, leave the group, and end the thread and the connections."""
        try:
            await self._call(self._consumer.close)
        finally:
            await asyncio.to_thread(self._thread.close)
            self._client.links.close_streams()

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(work))

    def _poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return self._consumer.poll(timeout_ms)

    def _heartbeat(self) -> int | None:
        """Send a heartbeat if it is due; its error is raised by the next poll."""
        if self._failure is not None:
            return None
        try:
            return self._consumer.heartbeat()
        except EngineError as error:
            self._failure = error
            return None
