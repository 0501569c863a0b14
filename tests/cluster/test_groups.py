"""Consumer groups of librdkafka against the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.embedded import EmbeddedCluster

_DEADLINE_S = 60.0
PARTITIONS, COUNT = 4, 200


def filled(cluster: EmbeddedCluster, topic: str) -> None:
    """Make a topic with records that say in which order they were sent."""
    admin = AdminClient({"bootstrap.servers": cluster.address})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(_DEADLINE_S)
    producer = Producer({"bootstrap.servers": cluster.address})
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(_DEADLINE_S) == 0


@contextmanager
def member(cluster: EmbeddedCluster, topic: str, **settings: Any) -> Iterator[Consumer]:
    """Return a member of the group that is named as the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.address,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6000,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def consume(consumers: list[Consumer], until: Callable[[list[int]], bool]) -> list[int]:
    """Poll consumers in turn until the numbers that they got are enough."""
    numbers: list[int] = []
    deadline_s = time.monotonic() + _DEADLINE_S
    while not until(numbers):
        assert time.monotonic() < deadline_s, sorted(numbers)
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                numbers.append(int(message.value()))
    return numbers


def shares(consumers: list[Consumer]) -> list[int]:
    """Return how many partitions each has."""
    return [len(consumer.assignment()) for consumer in consumers]


def test_a_group_shares_a_topic_and_goes_on_where_it_committed(
    cluster: EmbeddedCluster, topic: str
) -> None:
    filled(cluster, topic)
    with member(cluster, topic) as first, member(cluster, topic) as second:
        both = [first, second]
        numbers = consume(both, lambda found: len(found) >= COUNT and shares(both) == [2, 2])
        assert set(numbers) == set(range(COUNT))
        for consumer in both:
            consumer.commit(asynchronous=False)
    filled_again = Producer({"bootstrap.servers": cluster.address})
    filled_again.produce(topic, b"%d" % COUNT, partition=0)
    assert filled_again.flush(_DEADLINE_S) == 0
    with member(cluster, topic) as third:
        assert [COUNT] == consume([third], bool)
    admin = AdminClient({"bootstrap.servers": cluster.address})
    (described,) = admin.describe_consumer_groups([topic]).values()
    assert "EMPTY" == described.result().state.name
    (fetched,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)]).values()
    committed = {row.partition: row.offset for row in fetched.result().topic_partitions}
    assert dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS) == committed
    (deleted,) = admin.delete_consumer_groups([topic]).values()
    assert deleted.result() is None


def test_members_that_cooperate_take_over_from_one_that_goes(
    cluster: EmbeddedCluster, topic: str
) -> None:
    filled(cluster, topic)
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    with member(cluster, topic, **strategy) as first:
        with member(cluster, topic, **strategy) as second:
            both = [first, second]
            consume(both, lambda found: len(found) >= COUNT and shares(both) == [2, 2])
        consume([first], lambda _: shares([first]) == [PARTITIONS])
