"""Which fetcher follows which partition."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.replication.effects import FetchFrom
from engine.replication.following.replica_fetcher_manager import fetcher_number
from tests.unit.broker.memory_cluster import T0, MemoryCluster


@pytest.mark.parametrize(
    ("topic", "partition", "count", "number"),
    [
        # "t".hashCode() is 116: 31 * 116 + partition.
        ("t", 0, 4, 3596 % 4),
        ("t", 3, 4, 3599 % 4),
        ("t", 9, 1, 0),
        # "polygenelubricants".hashCode() is Java's least int; 31 times it is the same.
        ("polygenelubricants", 0, 7, 0),
        ("polygenelubricants", 1, 1 << 31, (1 << 31) - 1),
    ],
)
def test_a_partitions_number_is_that_of_javas_hash(
    topic: str, partition: int, count: int, number: int
) -> None:
    assert number == fetcher_number(TopicPartition(topic, partition), count)


def test_a_broker_that_is_about_to_stop_begins_to_follow_nobody() -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2), (2, 1)])
    cluster.pass_time(2000)
    fetchers = cluster.brokers[2].storage.fetchers
    first, second = T0, T0._replace(partition=1)
    fetchers.begin_no_more()
    assert 0 == cluster.produce(1, 3).code()
    assert 3 == cluster.partition(2).log.log_end_offset
    fetchers.fetch_from(FetchFrom(second, 1, 0))
    followed = [key for fetcher in fetchers.fetchers.values() for key in fetcher.followed.states]
    assert [first] == followed
    # An order about what it follows is one of another epoch: that is over, too.
    fetchers.fetch_from(FetchFrom(first, 1, 1))
    assert {} == fetchers.fetchers
