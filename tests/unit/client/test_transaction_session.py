"""Transactions of one producer, on brokers in memory."""

from __future__ import annotations

import pytest

from engine.client.producing import OutgoingRecord, Producer
from engine.client.transaction_session import TransactionSession
from engine.client.transactions import describe_transaction, fence_producer
from engine.errors import ApiError
from engine.kafka_errors import INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
from engine.model import TopicPartition
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def cluster() -> MemoryCluster:
    made = MemoryCluster(is_one_process=True, transaction_state_log_num_partitions="1")
    made.create_topic("t", ((1, 2),))
    made.pass_time(1_000)
    return made


def _written(cluster: MemoryCluster, transactional_id: str) -> TransactionSession:
    """Write a record in a transaction, and leave it open."""
    client = client_of(cluster, MemoryStreams(cluster))
    session = TransactionSession(client, transactional_id, 60_000)
    producer = Producer(client, transaction=session)
    producer.add(OutgoingRecord("t", None, b"x"))
    assert [None] == [result.error for result in producer.flush()]
    return session


def _state(cluster: MemoryCluster, transactional_id: str) -> str:
    client = client_of(cluster, MemoryStreams(cluster))
    return describe_transaction(client, transactional_id).state


@pytest.mark.parametrize(("commits", "state"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
def test_a_transaction_ends_as_requested(cluster: MemoryCluster, commits: bool, state: str) -> None:
    session = _written(cluster, f"id-{commits}")
    assert "Ongoing" == _state(cluster, session.transactional_id)
    session.end(commits=commits)
    cluster.pass_time(1_000)
    assert state == _state(cluster, session.transactional_id)


def test_a_transaction_without_partitions_ends_without_a_request(cluster: MemoryCluster) -> None:
    client = client_of(cluster, MemoryStreams(cluster))
    session = TransactionSession(client, "idle", 60_000)
    session.end(commits=True)
    assert "Empty" == _state(cluster, "idle")


def test_a_producer_that_was_fenced_cannot_commit(cluster: MemoryCluster) -> None:
    session = _written(cluster, "fenced")
    fence_producer(client_of(cluster, MemoryStreams(cluster)), "fenced")
    with pytest.raises(ApiError) as caught:
        session.end(commits=True)
    assert caught.value.code in (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED)
