"""The producer for asyncio, on a scripted cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from engine.client.async_producer import AsyncProducer, ProducerClosed, RecordAborted, StoredRecord
from engine.client.errors import BufferExhausted, RecordAboveBuffer
from engine.client.producing import ProducerOptions
from engine.client.transactional_producer import ProducerFenced, TransactionFailed, WrongPhase
from engine.errors import ApiError
from engine.wire.structs import message_class
from tests.unit.client.produce_log import P0, P1, ProduceLog, record

NOT_AUTHORIZED, FENCED, UNKNOWN_SERVER_ERROR = 29, 90, -1


class WakeableLog(ProduceLog):
    """A scripted cluster that knows transactions, and whose waiting never lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.add_code = self.init_code = self.end_code = 0
        self.closed_count = 0
        init = self.handlers["InitProducerId"]

        def initialized(*arguments: Any) -> Any:
            response = init(*arguments)
            response.error_code = self.init_code
            return response

        self.handlers["InitProducerId"] = initialized
        self.handlers["FindCoordinator"] = lambda *_: message_class("FindCoordinatorResponse")(
            coordinators=[
                message_class("FindCoordinatorResponse").Coordinator(
                    key="x", node_id=1, host="127.0.0.1", port=9001
                )
            ]
        )
        self.handlers["AddPartitionsToTxn"] = self.add_partitions
        self.handlers["EndTxn"] = self.end_transaction

    def add_partitions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        response = message_class("AddPartitionsToTxnResponse")
        rows = [
            response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    response.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=self.add_code
                    )
                    for index in topic.partitions
                ],
            )
            for topic in body.v3_and_below_topics
        ]
        return response(results_by_topic_v3_and_below=rows)

    def end_transaction(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        return message_class("EndTxnResponse")(error_code=self.end_code)

    def wake(self) -> None:
        """Do nothing: no wait lasts."""

    def close(self) -> None:
        """Note it."""
        self.closed_count += 1


@pytest.fixture
def log() -> WakeableLog:
    return WakeableLog()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def producer_threads() -> int:
    return sum(thread.name == "kctl-producer" for thread in threading.enumerate())


def test_records_have_their_places_and_nothing_is_left_after_the_close(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(log.client()) as producer:
            sent = [producer.send("t", b"%d" % n, partition=1) for n in range(3)]
            assert [P1] * 3 == [stored.partition for stored in await asyncio.gather(*sent)]
        assert (0, 1) == (producer_threads(), log.closed_count)

    run(work())


def test_a_record_that_cannot_be_written_fails_alone(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(log.client()) as producer:
            sent = [
                producer.send("t", value, partition=0)  # type: ignore[arg-type]
                for value in (b"a", "text", b"b")
            ]
            first, failed, last = await asyncio.gather(*sent, return_exceptions=True)
        assert isinstance(failed, TypeError)
        assert isinstance(first, StoredRecord) and isinstance(last, StoredRecord)
        assert [b"a", b"b"] == log.values(P0)

    run(work())


def test_a_partition_that_failed_takes_records_again_in_the_next_epoch(log: WakeableLog) -> None:
    async def work() -> None:
        log.codes = [NOT_AUTHORIZED]
        async with AsyncProducer(log.client()) as producer:
            with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send("t", b"a", partition=0)
            for value in (b"b", b"c"):
                await producer.send("t", value, partition=0)
            await producer.send("t", b"d", partition=1)
        assert [(P0, 1, 0), (P0, 1, 1), (P1, 0, 0)] == [
            (partition, batch.producer_epoch, batch.base_sequence)
            for partition, batch in log.batches
        ]

    run(work())


def test_a_close_may_be_repeated_and_nothing_is_sent_after_it(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(log.client()) as producer:
            await producer.send("t", b"a")
            await producer.close()
            with pytest.raises(ProducerClosed):
                producer.send("t", b"b")
        with pytest.raises(ProducerClosed):
            await producer.flush()
        assert 1 == log.closed_count

    run(work())


def test_a_producer_that_cannot_begin_leaves_no_thread(log: WakeableLog) -> None:
    async def work() -> None:
        log.init_code = FENCED
        with pytest.raises(ProducerFenced):
            await AsyncProducer(log.client(), transactional_id="x").__aenter__()
        assert (0, 1) == (producer_threads(), log.closed_count)

    run(work())


@pytest.mark.parametrize("batch_bytes", [1, 1000])
def test_records_that_a_failed_transaction_drops_have_its_error(
    log: WakeableLog, batch_bytes: int
) -> None:
    async def work() -> None:
        options = ProducerOptions(batch_bytes=batch_bytes, linger_ms=60_000)
        async with AsyncProducer(log.client(), options, transactional_id="x") as producer:
            await producer.begin()
            log.add_code = FENCED
            sent = [producer.send("t", b"%d" % n, partition=n % 2) for n in range(6)]
            with pytest.raises((ProducerFenced, WrongPhase)):
                await producer.flush()
            results = await asyncio.gather(*sent, return_exceptions=True)
        assert {ProducerFenced} <= {type(result) for result in results}
        assert not any(isinstance(result, StoredRecord) for result in results)

    run(work())


def test_records_that_an_abort_drops_are_aborted(log: WakeableLog) -> None:
    async def work() -> None:
        options = ProducerOptions(linger_ms=60_000)
        async with AsyncProducer(log.client(), options, transactional_id="x") as producer:
            await producer.begin()
            sent = producer.send("t", b"a")
            await producer.abort()
            with pytest.raises(RecordAborted):
                await sent

    run(work())


def test_records_of_a_commit_that_is_not_answered_have_their_places(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(
            log.client(), ProducerOptions(linger_ms=60_000), transactional_id="x"
        ) as producer:
            await producer.begin()
            sent = producer.send("t", b"a", partition=0)
            log.end_code = UNKNOWN_SERVER_ERROR
            with pytest.raises(TransactionFailed):
                await producer.commit()
            assert P0 == (await sent).partition

    run(work())


def test_nothing_is_dropped_without_an_error_where_no_producer_id_is_given(
    log: WakeableLog,
) -> None:
    async def work() -> None:
        options = ProducerOptions(linger_ms=60_000)
        async with AsyncProducer(log.client(), options) as producer:
            log.init_code = UNKNOWN_SERVER_ERROR
            sent = [producer.send("t", b"a", partition=n) for n in range(2)]
            with pytest.raises(ApiError):
                await producer.flush()
            results = await asyncio.gather(*sent, return_exceptions=True)
            assert [ApiError] * 2 == [type(result) for result in results]
            log.init_code = 0
            last = producer.send("t", b"b", partition=0)
            await producer.flush()
            await last
        # What failed was not sent behind its caller's back.
        assert [b"b"] == log.values(P0) + log.values(P1)

    run(work())


def test_the_thread_sleeps_while_records_linger(log: WakeableLog) -> None:
    async def work() -> None:
        producer = AsyncProducer(log.client(), ProducerOptions(linger_ms=50))
        producer._producer.add(record(b"a", partition=0))
        assert 50 == producer._make_progress()
        await producer._call(producer._producer.flush)
        producer._producer.add(record(b"b", partition=0))
        assert 50 == producer._make_progress()
        await producer.close()

    run(work())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_ours_leaves_no_record_without_a_result(
    log: WakeableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        producer = AsyncProducer(log.client())

        def fault(_wait_ms: int) -> None:
            raise AssertionError("broken")

        monkeypatch.setattr(producer._producer, "poll", fault)
        with pytest.raises(AssertionError, match="broken"):
            await producer.send("t", b"a")
        await asyncio.to_thread(producer._thread._thread.join)
        with pytest.raises(ProducerClosed):
            producer.send("t", b"b")

    run(work())


def test_results_that_an_abort_returns_are_those_of_their_records(
    log: WakeableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        options = ProducerOptions(linger_ms=60_000)
        async with AsyncProducer(log.client(), options, transactional_id="x") as producer:
            await producer.begin()
            sent = producer.send("t", b"a", partition=0)
            transactions = producer._transactional("abort")
            abort = transactions.abort
            # A response that comes while the abort waits for those under way.
            monkeypatch.setattr(transactions, "abort", lambda: [*transactions.flush(), *abort()])
            await producer.abort()
            assert P0 == (await sent).partition

    run(work())


def test_records_above_the_buffer_wait_for_room_in_their_order(log: WakeableLog) -> None:
    async def work() -> None:
        options = ProducerOptions(linger_ms=10_000, buffer_bytes=1_000)
        async with AsyncProducer(log.client(), options) as producer:
            sent = [producer.send("t", b"%03d" % n, partition=0) for n in range(40)]
            assert producer._buffer.held_bytes <= 1_000
            await producer.room()
            await producer.flush()
            await asyncio.gather(*sent)
            assert 0 == producer._buffer.held_bytes
        assert [b"%03d" % n for n in range(40)] == log.values(P0)

    run(work())


def test_a_small_record_does_not_pass_one_that_waits_for_room(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(log.client(), ProducerOptions(buffer_bytes=1_100)) as producer:
            # Of 900, 300 and 101 bytes, in one turn of the loop.
            values = [b"a" * 800, b"b" * 200, b"c"]
            await asyncio.gather(*[producer.send("t", value, partition=0) for value in values])
            assert 0 == producer._buffer.held_bytes
        assert values == log.values(P0)

    run(work())


def test_a_record_that_is_cancelled_before_it_waits_holds_up_no_other(log: WakeableLog) -> None:
    async def work() -> None:
        release = threading.Event()
        log.on_batch = lambda: assert_set(release)
        async with AsyncProducer(log.client(), ProducerOptions(buffer_bytes=1_000)) as producer:
            sent = [producer.send("t", value * 800, partition=0) for value in (b"a", b"b", b"c")]
            sent[1].cancel()
            # It takes effect in a turn of the loop: a result that came before would still let b in.
            await asyncio.wait([sent[1]])
            release.set()
            await asyncio.gather(sent[0], sent[2])
            assert sent[1].cancelled()
            assert 0 == producer._buffer.held_bytes
        assert [b"a" * 800, b"c" * 800] == log.values(P0)

    run(work())


def test_a_record_without_room_in_time_fails_with_javas_text(log: WakeableLog) -> None:
    async def work() -> None:
        release = threading.Event()
        log.on_batch = lambda: assert_set(release)
        options = ProducerOptions(buffer_bytes=101, max_block_ms=20)
        async with AsyncProducer(log.client(), options) as producer:
            first = producer.send("t", b"a", partition=0)
            second = producer.send("t", b"b", partition=0)
            text = r"Failed to allocate 101 bytes within the configured max blocking time 20 ms\."
            with pytest.raises(BufferExhausted, match=text):
                await second
            with pytest.raises(BufferExhausted):
                await producer.room()
            release.set()
            await first
            await producer.send("t", b"c", partition=0)
        assert [b"a", b"c"] == log.values(P0)

    run(work())


def assert_set(event: threading.Event) -> None:
    assert event.wait(30)


def test_a_record_larger_than_the_buffer_is_refused_at_once(log: WakeableLog) -> None:
    async def work() -> None:
        async with AsyncProducer(log.client(), ProducerOptions(buffer_bytes=200)) as producer:
            with pytest.raises(RecordAboveBuffer, match="301 bytes"):
                producer.send("t", b"a" * 201, partition=0)

    run(work())
