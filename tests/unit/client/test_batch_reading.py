"""Batches as a leader has them, read from a cluster in memory."""

from __future__ import annotations

import pytest

from engine.client.batch_reading import stored_batches
from engine.client.producing import OutgoingRecord, Producer
from engine.errors import ApiError
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

KEY = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2), (2, 1)])
    cluster.pass_time(2000)
    producer = Producer(client_of(cluster, MemoryStreams(cluster)))
    for _ in range(5):
        for _ in range(2):
            producer.add(OutgoingRecord("t", b"key", b"value", partition=0))
        producer.flush()
    cluster.pass_time(1000)
    return cluster


def offsets(
    cluster: MemoryCluster, start: int, end: int, key: TopicPartition = KEY
) -> list[tuple[int, int]]:
    client = client_of(cluster, MemoryStreams(cluster))
    return [
        (batch.base_offset, batch.last_offset)
        for stored in stored_batches(client, key, start, end)
        for batch in stored.batches
    ]


def test_batches_come_whole_and_in_order(cluster: MemoryCluster) -> None:
    assert [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)] == offsets(cluster, 0, 10)
    # Those at the bounds have records on both sides.
    assert [(2, 3), (4, 5), (6, 7)] == offsets(cluster, 3, 7)


def test_a_bound_beyond_the_end_ends_there(cluster: MemoryCluster) -> None:
    assert [(8, 9)] == offsets(cluster, 8, 50)
    assert [] == offsets(cluster, 10, 50)
    assert [] == offsets(cluster, 4, 4)


def test_what_the_leader_refuses_is_raised(cluster: MemoryCluster) -> None:
    with pytest.raises(ApiError):
        offsets(cluster, 50, 60)
    with pytest.raises(ApiError):
        offsets(cluster, 0, 10, TopicPartition("t", 9))
