"""librdkafka, by confluent-kafka, against the embedded broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.cluster.embedded import EmbeddedCluster

_DEADLINE_S = 30.0
Values = Callable[[int], list[bytes]]


def produced(cluster: EmbeddedCluster, topic: str, values: list[bytes], **settings: Any) -> None:
    """Produce values and see each of them acknowledged."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.address, **settings})
    for n, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=b"key %d" % n,
            headers={"number": str(n).encode()},
            partition=0,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    assert producer.flush(_DEADLINE_S) == 0
    assert errors == []


def consumed(cluster: EmbeddedCluster, topic: str, count: int, **settings: Any) -> list[Any]:
    """Consume a partition from its start, by assignment."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.address,
            "group.id": "unused",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Any] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), _DEADLINE_S)
        assert messages, f"{len(found)} of {count} came in time"
        for message in messages:
            assert message.error() is None
        found += messages
    consumer.close()
    return found


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(
    cluster: EmbeddedCluster, topic: str, values: Values, codec: str, is_idempotent: bool
) -> None:
    sent = values(300)
    settings = {"compression.type": codec, "enable.idempotence": is_idempotent, "linger.ms": 5}
    produced(cluster, topic, sent, **settings)
    found = consumed(cluster, topic, len(sent), **{"check.crcs": True})
    assert [message.value() for message in found] == sent
    assert [message.offset() for message in found] == list(range(len(sent)))
    assert found[7].headers() == [("number", b"7")]
    assert found[7].key() == b"key 7"
    assert found[7].timestamp()[0] == TIMESTAMP_CREATE_TIME


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement_works(
    cluster: EmbeddedCluster, topic: str, values: Values, acks: int
) -> None:
    produced(cluster, topic, values(1))
    produced(cluster, topic, values(20), acks=acks)
    assert len(consumed(cluster, topic, 21)) == 21


def test_committed_reading_sees_what_is_not_of_a_transaction(
    cluster: EmbeddedCluster, topic: str, values: Values
) -> None:
    produced(cluster, topic, values(5))
    found = consumed(cluster, topic, 5, **{"isolation.level": "read_committed"})
    assert len(found) == 5


def test_a_topic_is_made_changed_grown_and_deleted(cluster: EmbeddedCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.address})
    new = NewTopic(topic, num_partitions=2, config={"segment.bytes": "9999"})
    admin.create_topics([new])[topic].result()
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([new])[topic].result()
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    resource = ConfigResource(ResourceType.TOPIC, topic)
    change = ConfigEntry("retention.ms", "1234", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(change)
    admin.incremental_alter_configs([resource])[resource].result()
    requested = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([requested])[requested].result()
    assert (configs["retention.ms"].value, configs["segment.bytes"].value) == ("1234", "9999")
    assert len(admin.list_topics(topic, _DEADLINE_S).topics[topic].partitions) == 3
    admin.delete_topics([topic])[topic].result()
    assert topic not in admin.list_topics(timeout=_DEADLINE_S).topics


def test_offsets_are_found_by_their_kind_and_by_time(
    cluster: EmbeddedCluster, topic: str, values: Values
) -> None:
    produced(cluster, topic, values(10))
    admin = AdminClient({"bootstrap.servers": cluster.address})
    partition = TopicPartition(topic, 0)
    for spec, offset in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 10)):
        assert admin.list_offsets({partition: spec})[partition].result().offset == offset
    latest = admin.list_offsets({partition: OffsetSpec.max_timestamp()})[partition].result()
    by_time = OffsetSpec.for_timestamp(latest.timestamp)
    found = admin.list_offsets({partition: by_time})[partition].result()
    assert found.timestamp == latest.timestamp
    assert 0 <= found.offset <= latest.offset < 10


def test_records_are_deleted(cluster: EmbeddedCluster, topic: str, values: Values) -> None:
    produced(cluster, topic, values(10))
    admin = AdminClient({"bootstrap.servers": cluster.address})
    deleted = admin.delete_records([TopicPartition(topic, 0, 4)])
    assert next(iter(deleted.values())).result().low_watermark == 4
    assert consumed(cluster, topic, 6)[0].offset() == 4


def test_the_cluster_describes_itself(cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.address})
    described = admin.describe_cluster().result()
    assert sorted(node.id for node in described.nodes) == cluster.broker_ids
    assert described.controller.id in cluster.broker_ids
    assert len(described.cluster_id) == 22
