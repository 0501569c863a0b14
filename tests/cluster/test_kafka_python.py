"""kafka-python against the embedded broker, also as the clients of Kafka 0.10 spoke."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.cluster.embedded import EmbeddedCluster

_DEADLINE_S = 30
_OLD = (0, 10)
Values = Callable[[int], list[bytes]]


def produced(
    cluster: EmbeddedCluster, topic: str, values: list[bytes], **settings: Any
) -> list[int]:
    """Produce values and return their offsets."""
    with closing(KafkaProducer(bootstrap_servers=cluster.address, **settings)) as producer:
        sent = [producer.send(topic, value, key=b"key", partition=0) for value in values]
        return [future.get(_DEADLINE_S).offset for future in sent]


def consumed(cluster: EmbeddedCluster, topic: str, count: int, **settings: Any) -> list[Any]:
    """Consume a partition from its start, by assignment."""
    partition = TopicPartition(topic, 0)
    found: list[Any] = []
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.address,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        **settings,
    )
    with closing(consumer):
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        while len(found) < count:
            polled = consumer.poll(timeout_ms=_DEADLINE_S * 1000)
            assert polled, f"{len(found)} of {count} came in time"
            found += polled[partition]
    return found


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(
    cluster: EmbeddedCluster, topic: str, values: Values, codec: str | None, is_idempotent: bool
) -> None:
    sent = values(100)
    offsets = produced(
        cluster, topic, sent, compression_type=codec, acks="all", enable_idempotence=is_idempotent
    )
    assert offsets == list(range(len(sent)))
    assert [record.value for record in consumed(cluster, topic, len(sent))] == sent


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4"])
def test_clients_of_the_old_formats_read_each_others_records(
    cluster: EmbeddedCluster, topic: str, values: Values, codec: str | None
) -> None:
    sent = values(50)
    offsets = produced(cluster, topic, sent, api_version=_OLD, compression_type=codec)
    assert offsets == list(range(len(sent)))
    found = consumed(cluster, topic, len(sent), api_version=_OLD)
    assert [(record.key, record.value) for record in found] == [(b"key", value) for value in sent]


def test_old_clients_read_what_new_ones_wrote_and_back(
    cluster: EmbeddedCluster, topic: str, values: Values
) -> None:
    new, old = values(40)[:20], values(40)[20:]
    produced(cluster, topic, new, compression_type="lz4")
    produced(cluster, topic, old, api_version=_OLD)
    for version in ({}, {"api_version": _OLD}):
        found = consumed(cluster, topic, 40, **version)
        assert [record.value for record in found] == new + old
        assert [record.offset for record in found] == list(range(40))
