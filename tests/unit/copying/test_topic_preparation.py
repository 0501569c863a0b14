"""Topics of a copy: which are there, and how those are made that are not."""

from __future__ import annotations

import pytest

from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord, Producer
from engine.client.topic_admin import NewTopic
from engine.copying import topic_preparation
from engine.copying.copy_plan import CopiedTopic
from engine.copying.topic_preparation import (
    Destination,
    DestinationNotEmpty,
    DestinationTooSmall,
    SettingsUnread,
    check_empty,
    compare_topics,
)
from engine.errors import api_error
from engine.kafka_errors import TOPIC_AUTHORIZATION_FAILED
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T, ABSENT = CopiedTopic("t", "t", 2), CopiedTopic("t", "copy", 2)


@pytest.fixture(scope="module")
def client() -> KafkaClient:
    cluster = MemoryCluster(is_one_process=True)
    throttled = {"leader.replication.throttled.replicas": "0:1"}
    cluster.create_topic("t", ((1, 2), (2, 1)), **{"retention.ms": "77"}, **throttled)
    cluster.create_topic("empty", ((1, 2),))
    cluster.pass_time(1_000)
    client = client_of(cluster, MemoryStreams(cluster))
    producer = Producer(client)
    producer.add(OutgoingRecord("t", None, b"a", partition=1))
    producer.flush()
    return client


def prepared(client: KafkaClient, *topics: CopiedTopic, **options: object) -> Destination:
    given = {"replication_factor": None, "with_settings": True} | options
    return compare_topics(client, client, topics, **given)  # type: ignore[arg-type]


def test_a_topic_that_is_missing_is_made_as_the_source_has_it(client: KafkaClient) -> None:
    found = prepared(client, T, ABSENT)
    assert [T] == found.there
    assert [NewTopic("copy", 2, 2, configs={"retention.ms": "77"})] == found.missing


def test_replicas_and_settings_may_be_others(client: KafkaClient) -> None:
    found = prepared(client, ABSENT, replication_factor=1, with_settings=False)
    assert [NewTopic("copy", 2, 1)] == found.missing


def test_a_topic_with_fewer_partitions_cannot_take_a_copy(client: KafkaClient) -> None:
    with pytest.raises(DestinationTooSmall) as caught:
        prepared(client, CopiedTopic("t", "empty", 2))
    assert "kctl topics alter empty -p 2" in str(caught.value.hint)


def test_a_topic_with_records_is_named(client: KafkaClient) -> None:
    check_empty(client, [CopiedTopic("t", "empty", 1)])
    with pytest.raises(DestinationNotEmpty) as caught:
        check_empty(client, [CopiedTopic("t", "empty", 1), T])
    assert ["t"] == caught.value.names


def test_settings_that_may_not_be_read_are_reported_with_the_way_around(
    client: KafkaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = api_error(TOPIC_AUTHORIZATION_FAILED)
    monkeypatch.setattr(
        topic_preparation,
        "describe_configs",
        lambda _client, resources: dict.fromkeys(resources, refused),
    )
    with pytest.raises(SettingsUnread) as caught:
        prepared(client, ABSENT)
    assert "--no-settings" in str(caught.value.hint)
