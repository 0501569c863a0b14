"""The producer and the consumer for asyncio, on a broker in a process of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

import pytest

from engine.client.async_consumer import AsyncConsumer
from engine.client.async_producer import AsyncProducer, NoTransactions, RecordAborted, StoredRecord
from engine.client.blocking import KafkaClient
from engine.client.consumer_settings import ConsumerSettings
from engine.client.fetching import FetchOptions
from engine.client.groups import committed_offsets
from engine.client.member_session import MemberSettings
from engine.client.settings import parse_addresses
from engine.client.topic_admin import NewTopic, create_topics
from engine.client.transaction_calls import GroupMembership
from engine.embedded.access import KafkaAccess
from engine.errors import ApiError
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.model import TopicPartition

pytestmark = pytest.mark.slow
T0 = TopicPartition("t", 0)
READER = ConsumerSettings(
    MemberSettings("g", session_timeout_ms=6_000, heartbeat_interval_ms=200),
    auto_offset_reset="earliest",
    fetch=FetchOptions(read_committed=True, max_wait_ms=100),
)


@pytest.fixture
def address(kafka: KafkaAccess) -> str:
    return kafka.bootstrap


def client(address: str, streams: RealStreams | None = None) -> KafkaClient:
    return KafkaClient(
        parse_addresses(address),
        streams=streams or RealStreams.create_wakeable(),
        clock=RealClock(),
        entropy=RealEntropy(),
    )


@pytest.fixture
def topic(address: str, request: pytest.FixtureRequest) -> str:
    name = request.node.name
    with client(address, RealStreams()) as admin:
        create_topics(admin, [NewTopic(name, 1, 1)])
    return str(name)


def run(work: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_records_are_stored_in_order_and_read_again(address: str, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(client(address)) as producer:
            sent = [producer.send(topic, b"%d" % n, key=b"k") for n in range(1000)]
            stored = await asyncio.gather(*sent)
        assert [StoredRecord(TopicPartition(topic, 0), n) for n in range(1000)] == stored
        async with AsyncConsumer(client(address), READER) as consumer:
            await consumer.subscribe([topic])
            values = []
            async for record in consumer:
                values.append(record.value)
                if len(values) == 1000:
                    break
            assert [b"%d" % n for n in range(1000)] == values

    run(work())


def test_a_record_for_a_topic_that_is_not_there_fails_alone(address: str, topic: str) -> None:
    async def work() -> None:
        async with AsyncProducer(client(address)) as producer:
            failed = producer.send("not-there", b"v")
            stored = producer.send(topic, b"v", headers=[("h", b"1")])
            with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await failed
            assert 0 == (await stored).offset

    run(work())


def test_a_call_does_not_wait_for_a_poll_that_goes_on(address: str, topic: str) -> None:
    async def work() -> None:
        async with AsyncConsumer(client(address), READER) as consumer:
            await consumer.subscribe([topic])
            await consumer.poll(1_000)
            polling = asyncio.create_task(consumer.poll(20_000))
            await asyncio.sleep(0.05)
            began_s = time.monotonic()
            assert {TopicPartition(topic, 0)} == await consumer.assignment()
            assert time.monotonic() - began_s < 10
            assert not polling.done()
            async with AsyncProducer(client(address)) as producer:
                await producer.send(topic, b"late")
            assert [b"late"] == [record.value for record in await polling]

    run(work())


def test_a_member_that_works_on_its_records_stays_in_the_group(address: str, topic: str) -> None:
    settings = READER._replace(
        member=MemberSettings("slow", session_timeout_ms=6_000, heartbeat_interval_ms=100)
    )

    async def work() -> None:
        async with AsyncConsumer(client(address), settings) as consumer:
            await consumer.subscribe([topic])
            await consumer.poll(1_000)
            session = consumer._consumer._group.session  # type: ignore[union-attr]
            before_ms = session._next_heartbeat_ms
            # The application does something else; the thread sends heartbeats meanwhile.
            while session._next_heartbeat_ms < before_ms + 300:
                await asyncio.sleep(0.01)
            assert session.is_joined

    run(work())


def test_a_transaction_is_seen_when_it_is_committed_with_its_offsets(
    address: str, topic: str
) -> None:
    async def work() -> None:
        async with AsyncProducer(client(address), transactional_id=topic) as producer:
            await producer.begin()
            lost = producer.send(topic, b"lost")
            await producer.abort()
            with pytest.raises(RecordAborted):
                await lost
            await producer.begin()
            kept = producer.send(topic, b"kept")
            await producer.send_offsets(GroupMembership("by-hand"), {TopicPartition(topic, 0): 7})
            await producer.commit()
            await kept
        alone = READER._replace(member=None)
        async with AsyncConsumer(client(address), alone) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            assert [b"kept"] == [record.value for record in await consumer.poll(10_000)]

    run(work())
    with client(address, RealStreams()) as admin:
        assert {TopicPartition(topic, 0): 7} == committed_offsets(admin, "by-hand")


def test_a_producer_without_a_transactional_id_has_no_transactions(address: str) -> None:
    async def work() -> None:
        async with AsyncProducer(client(address)) as producer:
            with pytest.raises(NoTransactions, match="begin needs a transactional id"):
                await producer.begin()

    run(work())
