"""The consumer for asyncio, on brokers in memory that its thread alone moves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from engine.client.async_consumer import AsyncConsumer, ConsumerClosed
from engine.client.buffered_records import ConsumerRecord
from engine.client.consumer_settings import ConsumerSettings
from engine.client.errors import Unreachable
from engine.client.group_session import GroupSession
from engine.client.groups import committed_offsets, describe_group
from engine.errors import EngineError, api_error
from engine.host.streams import StreamEvent
from engine.kafka_errors import COORDINATOR_LOAD_IN_PROGRESS
from engine.model import TopicPartition
from tests.unit.client.test_consumer import MEMBER, POLL_MS, SETTINGS, Rebalances, offsets
from tests.unit.client.test_group_consumer import T0, Stage
from tests.unit.reassign.memory_streams import MemoryStreams, client_of


class WakeableMemoryStreams(MemoryStreams):
    """Streams whose waiting is no more than time in memory."""

    closed_count = 0
    is_silent = False

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        """Wait in short pieces; what arrives is lost while no broker is to answer."""
        if not self.is_silent:
            return super().wait(min(timeout_ms, 100))
        self._cluster.pass_time(min(max(timeout_ms, 1), 100))
        self.events.clear()
        return []

    def wake(self) -> None:
        """Do nothing: no wait lasts."""

    def close(self) -> None:
        """Note it."""
        self.closed_count += 1


class AsyncStage(Stage):
    """A cluster in memory, for one consumer."""

    def __init__(self) -> None:
        super().__init__()
        self.streams = WakeableMemoryStreams(self.cluster)

    def async_consumer(self, settings: ConsumerSettings = SETTINGS) -> AsyncConsumer:
        return AsyncConsumer(client_of(self.cluster, self.streams), settings)

    def committed_of_t0(self) -> int | None:
        return committed_offsets(self.client, "g").get(T0)


@pytest.fixture
def stage() -> AsyncStage:
    return AsyncStage()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def first_records(consumer: AsyncConsumer) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    while not records:
        records = await consumer.poll(POLL_MS)
    return records


class HeldPoll:
    """Holds up the next poll of a consumer on its thread."""

    def __init__(self, consumer: AsyncConsumer) -> None:
        self.started, self.may_go_on = threading.Event(), threading.Event()
        self._consumer = consumer.blocking
        self._poll = self._consumer.poll
        self._consumer.poll = self  # type: ignore[method-assign, assignment]

    def __call__(self, timeout_ms: int) -> list[ConsumerRecord]:
        self._consumer.poll = self._poll  # type: ignore[method-assign]
        self.started.set()
        assert self.may_go_on.wait(30)
        records: list[ConsumerRecord] = []
        while not records:
            records = self._poll(timeout_ms)
        return records


def test_records_of_a_poll_that_was_cancelled_are_returned_by_the_next(stage: AsyncStage) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            held = HeldPoll(consumer)
            polling = asyncio.create_task(consumer.poll(POLL_MS))
            await asyncio.to_thread(held.started.wait, 30)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            held.may_go_on.set()
            # Nobody has seen them, so they are not processed.
            await consumer.commit()
            assert 0 == await consumer.position(T0)
            assert [0, 1, 2, 3, 4] == offsets(await first_records(consumer))

    run(work())


def test_records_that_a_loop_has_not_come_to_are_not_processed(stage: AsyncStage) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            async for record in consumer:
                if record.offset == 1:
                    break

    run(work())
    assert 2 == stage.committed_of_t0()


def test_a_commit_within_a_loop_is_of_what_it_has_come_to(stage: AsyncStage) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            seen = []
            async for record in consumer:
                seen.append(record.offset)
                await consumer.commit()
                assert record.offset + 1 == await consumer._call(stage.committed_of_t0)
                if len(seen) == 5:
                    break
            assert [0, 1, 2, 3, 4] == seen

    run(work())


def test_a_close_may_be_repeated_and_nothing_is_read_after_it(stage: AsyncStage) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            await first_records(consumer)
            await consumer.close()
        with pytest.raises(ConsumerClosed):
            await consumer.poll(0)
        assert 1 == stage.streams.closed_count
        assert not [t for t in threading.enumerate() if t.name == "kctl-consumer"]

    run(work())
    assert () == describe_group(stage.client, "g").members


def test_a_close_that_is_cancelled_ends_the_thread(stage: AsyncStage) -> None:
    async def work() -> None:
        consumer = stage.async_consumer()
        await consumer.subscribe(["t"])
        held = HeldPoll(consumer)
        polling = asyncio.create_task(consumer.poll(POLL_MS))
        await asyncio.to_thread(held.started.wait, 30)
        closing = asyncio.create_task(consumer.close())
        await asyncio.sleep(0)
        closing.cancel()
        held.may_go_on.set()
        await asyncio.gather(polling, closing, return_exceptions=True)
        await consumer.close()
        assert 1 == stage.streams.closed_count

    run(work())


def test_a_listener_commits_by_the_consumer_of_its_thread(stage: AsyncStage) -> None:
    async def work() -> None:
        manual = SETTINGS._replace(enable_auto_commit=False)
        async with stage.async_consumer(manual) as consumer:

            class Committing(Rebalances):
                def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
                    consumer.blocking.commit()

            await consumer.subscribe(["t"], Committing())
            await first_records(consumer)

    run(work())
    assert 5 == stage.committed_of_t0()


def test_an_error_between_polls_is_raised_by_the_next(
    stage: AsyncStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            await first_records(consumer)
            called = threading.Event()

            def broken() -> None:
                called.set()
                raise ValueError("broken")

            with monkeypatch.context() as patch:
                patch.setattr(consumer.blocking, "heartbeat", broken)
                await consumer.assignment()
                await asyncio.to_thread(called.wait, 30)
            with pytest.raises(ValueError, match="broken"):
                await consumer.poll(0)
            await consumer.poll(0)

    run(work())


@pytest.mark.parametrize(
    "error", [Unreachable("b1", 9092, "refused"), api_error(COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_heartbeats_go_on_after_an_error_that_may_pass(
    stage: AsyncStage, monkeypatch: pytest.MonkeyPatch, error: EngineError
) -> None:
    async def work() -> None:
        async with stage.async_consumer() as consumer:
            await consumer.subscribe(["t"])
            await first_records(consumer)
            heartbeat, called = consumer.blocking.heartbeat, threading.Semaphore(0)
            errors = [error, error]

            def failing() -> int | None:
                called.release()
                if errors:
                    raise errors.pop()
                return heartbeat()

            with monkeypatch.context() as patch:
                patch.setattr(consumer.blocking, "heartbeat", failing)
                await consumer.assignment()
                for _ in range(3):
                    assert await asyncio.to_thread(called.acquire, timeout=30)
                await consumer.poll(0)

    run(work())


def test_a_close_ends_a_join_that_waits_for_other_members(stage: AsyncStage) -> None:
    other = GroupSession(stage.new_client(), MEMBER._replace(session_timeout_ms=1_000_000), ["t"])
    other.join()

    async def work() -> None:
        consumer = stage.async_consumer()
        loop, closing = asyncio.get_running_loop(), []
        began_ms = stage.cluster.clock.monotonic_ms()

        def close_once() -> None:
            if not closing:
                closing.append(asyncio.run_coroutine_threadsafe(consumer.close(5_000), loop))
                while consumer._client.connections.close_deadline_ms is None:
                    pass

        await consumer.subscribe(["t"])
        stage.streams.on_wait = close_once
        with pytest.raises(ConsumerClosed):
            await consumer.poll(POLL_MS)
        await asyncio.wrap_future(closing[0])
        assert stage.cluster.clock.monotonic_ms() - began_ms < 5_000
        assert 1 == stage.streams.closed_count

    run(work())
    (member,) = describe_group(stage.client, "g").members
    assert other.member_id == member.member_id


def test_a_close_gives_up_a_coordinator_that_is_silent(stage: AsyncStage) -> None:
    async def work() -> None:
        consumer = stage.async_consumer()
        await consumer.subscribe(["t"])
        await first_records(consumer)
        await consumer.assignment()
        stage.streams.is_silent = True
        began_ms = stage.cluster.clock.monotonic_ms()
        with pytest.raises(EngineError):
            await consumer.close(2_000)
        assert stage.cluster.clock.monotonic_ms() - began_ms < 3_000
        assert 1 == stage.streams.closed_count

    run(work())
