"""Replication at a throttle, on whole brokers. Source: REPL-17, KIP-73."""

from __future__ import annotations

import pytest

from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import MemoryCluster

LEADER = "leader.replication.throttled"
FOLLOWER = "follower.replication.throttled"
_TOPIC, _BROKER = 2, 4
RATE = 312


def alter(cluster: MemoryCluster, kind: int, name: str, **configs: str) -> None:
    """Set configs of a topic or a broker."""
    request = message_class("IncrementalAlterConfigsRequest")
    rows = [
        request.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    broker_id = int(name) if kind == _BROKER else 1
    answer = cluster.ask(broker_id, "IncrementalAlterConfigs", 1, resources=[resource]).answer()
    assert [0] == [row.error_code for row in answer.responses]


def behind(*, is_one_process: bool, **throttled: str) -> MemoryCluster:
    """Return a cluster whose broker 2 has missed 40 batches of broker 1 and is out of the set.

    The lists of the topic are given; the rates let a twentieth of it through each second.
    """
    cluster = MemoryCluster(
        is_one_process=is_one_process,
        replica_lag_time_max_ms="2000",
        replica_fetch_wait_max_ms="200",
        replica_fetch_max_bytes="1",
        auto_leader_rebalance_enable="false",
    )
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    alter(cluster, _TOPIC, "t", **throttled)
    for broker_id in (1, 2):
        rates = {f"{LEADER}.rate": str(RATE), f"{FOLLOWER}.rate": str(RATE)}
        alter(cluster, _BROKER, str(broker_id), **rates)
    cluster.stop(2)
    for _ in range(40):
        assert 0 == cluster.produce(1, 5, acks=1).code()
    cluster.pass_time(4000)
    assert [1] == list(cluster.stored().isr)
    return cluster


@pytest.mark.parametrize("is_one_process", [True, False])
@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_a_replica_that_is_behind_gets_no_more_than_the_rate(
    side: str, is_one_process: bool
) -> None:
    cluster = behind(is_one_process=is_one_process, **{f"{side}.replicas": "*"})
    size = len(cluster.content(1))
    assert 20 * RATE == size
    cluster.start(2)
    cluster.pass_time(10_000)
    there = len(cluster.content(2))
    assert 0.2 * size < there < 0.75 * size
    cluster.pass_time(25_000)
    assert cluster.content(1) == cluster.content(2)
    assert [1, 2] == sorted(cluster.stored().isr)


def test_what_is_in_sync_goes_on_at_a_rate_of_nothing() -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    alter(cluster, _TOPIC, "t", **{f"{LEADER}.replicas": "*", f"{FOLLOWER}.replicas": "0:2"})
    for broker_id in (1, 2):
        alter(cluster, _BROKER, str(broker_id), **{f"{LEADER}.rate": "0", f"{FOLLOWER}.rate": "0"})
    cluster.pass_time(1000)
    for _ in range(5):
        assert 0 == cluster.produce(1, 5).code()
        cluster.pass_time(100)
    assert cluster.content(1) == cluster.content(2)


def test_replicas_that_the_list_does_not_name_are_not_throttled() -> None:
    lists = {f"{LEADER}.replicas": "0:3", f"{FOLLOWER}.replicas": "1:2"}
    cluster = behind(is_one_process=True, **lists)
    cluster.start(2)
    cluster.pass_time(1000)
    assert cluster.content(1) == cluster.content(2)
