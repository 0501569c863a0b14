"""Transactional producers and consumers of librdkafka against the embedded broker (T1)."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.embedded import EmbeddedCluster

_DEADLINE_S = 60.0
PARTITIONS = 3


@pytest.fixture
def filled(cluster: EmbeddedCluster, topic: str) -> str:
    """Return a topic with a few partitions."""
    admin = AdminClient({"bootstrap.servers": cluster.address})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(_DEADLINE_S)
    return topic


def producer(cluster: EmbeddedCluster, transactional_id: str) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": cluster.address,
            "transactional.id": transactional_id,
            "log_level": 0,
        }
    )
    made.init_transactions(_DEADLINE_S)
    return made


def read(cluster: EmbeddedCluster, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Return all values up to the end that a reader of this isolation sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    values, ended = [], set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(_DEADLINE_S)
        assert message is not None
        if message.error():
            ended.add(message.partition())
        else:
            values.append(message.value())
    consumer.close()
    return values


def send(made: Producer, topic: str, values: list[bytes], **more: Any) -> None:
    for number, value in enumerate(values):
        made.produce(topic, value, partition=number % PARTITIONS, **more)


def test_readers_of_committed_records_see_what_was_committed(
    cluster: EmbeddedCluster, filled: str
) -> None:
    made = producer(cluster, f"{filled}-id")
    committed, aborted = [], []
    for number in range(8):
        values = [b"%d-%d" % (number, n) for n in range(10)]
        made.begin_transaction()
        send(made, filled, values)
        assert made.flush(_DEADLINE_S) == 0
        if number % 4 == 3:
            made.abort_transaction(_DEADLINE_S)
            aborted += values
        else:
            made.commit_transaction(_DEADLINE_S)
            committed += values
    assert sorted(committed) == sorted(read(cluster, filled))
    assert sorted(committed + aborted) == sorted(read(cluster, filled, "read_uncommitted"))


def test_offsets_move_with_the_transaction(cluster: EmbeddedCluster, filled: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.address,
            "group.id": filled,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([filled])
    plain = Producer({"bootstrap.servers": cluster.address})
    send(plain, filled, [b"in"])
    assert plain.flush(_DEADLINE_S) == 0
    message = consumer.poll(_DEADLINE_S)
    assert message is not None and not message.error()
    made = producer(cluster, f"{filled}-id")
    for is_commit in (False, True):
        made.begin_transaction()
        send(made, filled, [b"out"])
        position = [TopicPartition(filled, 0, 1)]
        made.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), _DEADLINE_S)
        if is_commit:
            made.commit_transaction(_DEADLINE_S)
        else:
            made.abort_transaction(_DEADLINE_S)
        (committed,) = consumer.committed([TopicPartition(filled, 0)], _DEADLINE_S)
        assert (1 if is_commit else -1001) == committed.offset
    consumer.close()


def test_an_older_producer_of_an_id_is_fenced(cluster: EmbeddedCluster, filled: str) -> None:
    first = producer(cluster, f"{filled}-id")
    first.begin_transaction()
    send(first, filled, [b"lost"])
    assert first.flush(_DEADLINE_S) == 0
    second = producer(cluster, f"{filled}-id")
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(_DEADLINE_S)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    send(second, filled, [b"kept"])
    second.commit_transaction(_DEADLINE_S)
    assert [b"kept"] == read(cluster, filled)
