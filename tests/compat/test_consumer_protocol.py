"""Groups of the consumer protocol on a cluster that has it: `make compat KCTL_TEST_BOOTSTRAP=…`.

Kafka 4.0 and later have it as they are installed, 3.9 with `group.version` 1. A member that is
killed is waited for, so a short `group.consumer.session.timeout.ms` makes this quick.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from engine.client.async_consumer import AsyncConsumer
from engine.client.blocking import KafkaClient
from engine.client.consumer import Consumer
from engine.client.consumer_heartbeat import NoConsumerProtocol, SubscriptionPattern
from engine.client.consumer_settings import ConsumerSettings
from engine.client.fetching import FetchOptions
from engine.client.groups import describe_group
from engine.client.member_session import MemberSettings
from engine.client.producing import OutgoingRecord, Producer
from engine.client.settings import parse_addresses
from engine.client.topic_admin import NewPartitions, NewTopic, create_partitions, create_topics
from engine.errors import ApiError
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.kafka_errors import UNRELEASED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR

BOOTSTRAP = os.environ.get("KCTL_TEST_BOOTSTRAP", "")
_POLL_MS = 100
_DEADLINE_S = 90

pytestmark = [
    pytest.mark.skipif(not BOOTSTRAP, reason="asks for a cluster: KCTL_TEST_BOOTSTRAP"),
    pytest.mark.slow,
    pytest.mark.xdist_group("compat"),
]


class Group:
    """A topic and a group of its own, and their members."""

    def __init__(self) -> None:
        self.name = f"kip848-{uuid4().hex[:8]}"
        self.admin = self._client()
        self._clients: list[KafkaClient] = []
        for result in create_topics(self.admin, [NewTopic(self.name, 4, 1)]).values():
            assert not isinstance(result, ApiError), result
        self.produce(20)

    def _client(self, streams: RealStreams | None = None) -> KafkaClient:
        return KafkaClient(
            parse_addresses(BOOTSTRAP),
            streams=streams or RealStreams(),
            clock=RealClock(),
            entropy=RealEntropy(),
        )

    def settings(self, **of_member: str) -> ConsumerSettings:
        member = MemberSettings(self.name, group_protocol="consumer")
        return ConsumerSettings(
            member._replace(**of_member),  # type: ignore[arg-type]
            auto_offset_reset="earliest",
            fetch=FetchOptions(max_wait_ms=50),
        )

    def consumer(self, **of_member: str) -> Consumer:
        self._clients.append(self._client())
        consumer = Consumer(self._clients[-1], self.settings(**of_member))
        consumer.subscribe([self.name])
        return consumer

    def async_consumer(self) -> AsyncConsumer:
        return AsyncConsumer(self._client(RealStreams.create_wakeable()), self.settings())

    def produce(self, count: int, partition: int | None = None) -> None:
        producer = Producer(self.admin)
        for number in range(count):
            at = number % 4 if partition is None else partition
            producer.add(OutgoingRecord(self.name, None, b"%d" % number, partition=at))
        producer.flush()

    def kill(self, consumer: Consumer) -> None:
        """Close its connections, and nothing else."""
        consumer._client.close()

    def close(self) -> None:
        for client in (self.admin, *self._clients):
            client.close()


@pytest.fixture
def group() -> Iterator[Group]:
    found = Group()
    yield found
    found.close()


def poll_until(is_done: Callable[[], bool], *consumers: Consumer) -> int:
    """Poll consumers until something holds; returns how many records came."""
    deadline, count = time.monotonic() + _DEADLINE_S, 0
    while not is_done():
        assert time.monotonic() < deadline, [c.assignment for c in consumers]
        count += sum(len(consumer.poll(_POLL_MS)) for consumer in consumers)
    return count


def shares(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment) for consumer in consumers]


def test_two_members_share_one_is_killed_and_the_topic_grows(group: Group) -> None:
    first = group.consumer()
    poll_until(lambda: shares(first) == [4], first)
    second = group.consumer()
    poll_until(lambda: shares(first, second) == [2, 2], first, second)
    assert not first.assignment & second.assignment
    described = describe_group(group.admin, group.name)
    assert {first.assignment, second.assignment} == {
        frozenset(member.partitions or ()) for member in described.members
    }
    group.kill(second)
    poll_until(lambda: shares(first) == [4], first)
    create_partitions(group.admin, {group.name: NewPartitions(6)})
    poll_until(lambda: shares(first) == [6], first)
    first.close()
    assert "Empty" == describe_group(group.admin, group.name).state


def test_every_record_is_read_and_what_is_committed_is_not_read_again(group: Group) -> None:
    first = group.consumer()
    seen = 0
    deadline = time.monotonic() + _DEADLINE_S
    while seen < 20:
        assert time.monotonic() < deadline
        seen += len(first.poll(_POLL_MS))
    second = group.consumer()
    # What the first gives up is committed: the second reads nothing of it again.
    again = poll_until(lambda: shares(first, second) == [2, 2], first, second)
    group.produce(4)
    while seen + again < 24:
        assert time.monotonic() < deadline
        again += len(first.poll(_POLL_MS)) + len(second.poll(_POLL_MS))
    first.close()
    second.close()
    third = group.consumer()
    poll_until(lambda: shares(third) == [4], third)
    assert [] == third.poll(1_000)
    assert 24 == sum(third.committed(sorted(third.assignment)).values())
    third.close()


def test_a_static_member_that_restarts_keeps_its_partitions(group: Group) -> None:
    static, other = group.consumer(group_instance_id="one"), group.consumer()
    poll_until(lambda: shares(static, other) == [2, 2], static, other)
    had = static.assignment
    static.close()
    again = group.consumer(group_instance_id="one")
    poll_until(lambda: len(again.assignment) == 2, again, other)
    assert had == again.assignment
    rival = group.consumer(group_instance_id="one")
    with pytest.raises(ApiError) as caught:
        rival.poll(_POLL_MS)
    assert UNRELEASED_INSTANCE_ID == caught.value.code
    for consumer in (rival, again, other):
        consumer.close()


def test_the_broker_takes_its_assignors_by_name_alone(group: Group) -> None:
    refused = group.consumer(remote_assignor="none")
    with pytest.raises(ApiError, match="Supported assignors") as caught:
        refused.poll(_POLL_MS)
    assert UNSUPPORTED_ASSIGNOR == caught.value.code
    ranged = group.consumer(remote_assignor="range")
    poll_until(lambda: shares(ranged) == [4], ranged)
    assert "range" == describe_group(group.admin, group.name).protocol_name
    ranged.close()


def test_the_broker_matches_a_pattern(group: Group) -> None:
    reader = group.consumer()
    reader.subscribe(SubscriptionPattern(f"{group.name}.*"))
    try:
        reader.poll(_POLL_MS)
    except NoConsumerProtocol as error:
        # Version 0, before Kafka 4.0.
        assert "patterns" in error.lacking
        return
    poll_until(lambda: shares(reader) == [4], reader)
    create_topics(group.admin, [NewTopic(f"{group.name}-more", 1, 1)])
    poll_until(lambda: shares(reader) == [5], reader)
    reader.close()


def test_an_async_member_stays_between_polls_and_leaves_as_it_closes(group: Group) -> None:
    async def work() -> None:
        async with group.async_consumer() as consumer:
            await consumer.subscribe([group.name])
            seen = 0
            async for _ in consumer:
                seen += 1
                if seen == 20:
                    break
            # Longer than a session: the thread heartbeats.
            await asyncio.sleep(8)
            assert 1 == len(describe_group(group.admin, group.name).members)
            assert 4 == len(await consumer.assignment())

    asyncio.run(work())
    assert () == describe_group(group.admin, group.name).members
