"""Consumers are sent to a follower in their rack, and read there. Source: REPL-9, KIP-392."""

from __future__ import annotations

from typing import Any

import pytest

from engine.kafka_errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER
from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import MemoryCluster

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
ON_LEADER = "org.apache.kafka.common.replica.LeaderSelector"


def cluster_of(selector: str | None = RACK_AWARE) -> MemoryCluster:
    more = {} if selector is None else {"replica_selector_class": selector}
    cluster = MemoryCluster(is_one_process=False, broker_rack="rack{id}", **more)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    assert 0 == cluster.produce(1, 3).code()
    cluster.pass_time(1000)
    return cluster


def fetched(
    cluster: MemoryCluster,
    broker_id: int,
    rack_id: str,
    *,
    offset: int = 0,
    version: int = 11,
    epoch: int = -1,
) -> Any:
    request = message_class("FetchRequest")
    requested = request.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    rack = {"rack_id": rack_id} if version >= 11 else {}
    answer = cluster.ask(
        broker_id,
        "Fetch",
        version,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[request.FetchTopic(topic="t", partitions=[requested])],
        **rack,
    ).answer()
    return answer.responses[0].partitions[0]


def test_a_consumer_in_a_followers_rack_is_sent_there_and_reads_there() -> None:
    cluster = cluster_of()
    row = fetched(cluster, 1, "rack2")
    assert (0, 2, b"", 3, 3) == (
        row.error_code,
        row.preferred_read_replica,
        row.records or b"",
        row.high_watermark,
        row.last_stable_offset,
    )
    row = fetched(cluster, 2, "rack2")
    assert (0, -1, 3) == (row.error_code, row.preferred_read_replica, row.high_watermark)
    assert cluster.content(1) == bytes(row.records)


@pytest.mark.parametrize("rack_id", ["rack1", "rack3", ""])
def test_who_has_no_follower_in_its_rack_reads_from_the_leader(rack_id: str) -> None:
    row = fetched(cluster_of(), 1, rack_id)
    assert (0, -1) == (row.error_code, row.preferred_read_replica)
    assert row.records


@pytest.mark.parametrize("selector", [None, ON_LEADER])
def test_without_the_rule_nobody_is_sent_away(selector: str | None) -> None:
    row = fetched(cluster_of(selector), 1, "rack2")
    assert (0, -1) == (row.error_code, row.preferred_read_replica)
    assert row.records


def test_a_follower_out_of_sync_or_gone_is_nobody_to_read_from() -> None:
    cluster = cluster_of()
    cluster.cut_power(2)
    cluster.pass_time(1000)
    row = fetched(cluster, 1, "rack2")
    assert (-1, True) == (row.preferred_read_replica, bool(row.records))


def test_a_follower_that_lacks_the_offset_is_nobody_to_read_from() -> None:
    cluster = cluster_of()
    cluster.brokers[2].storage.fetchers.close()
    assert 0 == cluster.produce(1, 2, acks=1).code()
    assert -1 == fetched(cluster, 1, "rack2", offset=4).preferred_read_replica


def test_an_old_consumer_reads_from_the_leader_alone() -> None:
    cluster = cluster_of()
    assert fetched(cluster, 1, "rack2", version=10).records
    assert NOT_LEADER_OR_FOLLOWER == fetched(cluster, 2, "rack2", version=10).error_code


def test_a_fenced_consumer_gets_that_error_first() -> None:
    cluster = cluster_of()
    cluster.stop(2)
    cluster.pass_time(500)
    cluster.start(2)
    cluster.stop(1)
    cluster.start(1)
    cluster.pass_time(2000)
    assert 2 == cluster.stored().leader
    row = fetched(cluster, 2, "rack1", epoch=0)
    assert FENCED_LEADER_EPOCH == row.error_code
