"""Which replica a consumer is sent to. Source: REPL-9."""

from __future__ import annotations

import pytest

from engine.host.memory import ManualClock
from engine.replication.metadata_cache import BrokerNode, Endpoint, MetadataCache, PartitionMetadata
from engine.replication.nearest_replica import NearestReplica, ReplicaView, choose_replica
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchClient, FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import Broker, fetched, leader_of, ports_of

LEADER = ReplicaView(1, "a", 100)


@pytest.mark.parametrize(
    ("rack_id", "followers", "chosen"),
    [
        pytest.param("", [ReplicaView(2, "", 100)], 1, id="who says no rack reads from the leader"),
        pytest.param("a", [ReplicaView(2, "a", 100)], 1, id="a leader in the rack is as good"),
        pytest.param("b", [ReplicaView(2, "b", 90)], 2, id="a follower in the rack"),
        pytest.param("c", [ReplicaView(2, "b", 100)], 1, id="nobody in the rack"),
        pytest.param("b", [ReplicaView(2, None, 100)], 1, id="a follower without a rack"),
        pytest.param("b", [ReplicaView(2, "b", 90), ReplicaView(3, "b", 91)], 3, id="who has most"),
        pytest.param(
            "b", [ReplicaView(2, "b", 90, 5), ReplicaView(3, "b", 90, 6)], 2, id="caught up last"
        ),
        pytest.param(
            "b", [ReplicaView(3, "b", 90, 5), ReplicaView(2, "b", 90, 5)], 3, id="the higher id"
        ),
    ],
)
def test_a_consumer_reads_where_it_is_nearest(
    rack_id: str, followers: list[ReplicaView], chosen: int
) -> None:
    assert chosen == choose_replica(rack_id, LEADER, followers).broker_id


CLIENT = FetchClient("b", "CLIENTS")


def cache_of(**racks: str) -> MetadataCache:
    """Return a cache of brokers 1 to 3; the third has no listener for clients."""
    cache = MetadataCache(1, "cluster")
    listeners = {1: "CLIENTS", 2: "CLIENTS", 3: "BROKERS"}
    nodes = [
        BrokerNode(broker_id, (Endpoint(listener, "here", 9092),), racks.get(f"b{broker_id}", "b"))
        for broker_id, listener in listeners.items()
    ]
    cache.update(1, nodes, {PARTITION: PartitionMetadata(1, 0, (1, 2, 3), 0, (1, 2, 3))}, {})
    return cache


def followed(clock: ManualClock) -> Partition:
    """Return a partition whose followers, brokers 2 and 3, have fetched."""
    partition = leader_of((1, 2, 3), clock)
    for broker_id in (2, 3):
        fetched(partition, 0, broker_id)
    return partition


def test_a_replica_is_read_from_that_is_reached_by_the_listener_the_client_came_by() -> None:
    clock = ManualClock()
    partition = followed(clock)
    nearest = NearestReplica(cache_of(b1="a"), clock)
    assert 2 == nearest.preferred_replica(partition, CLIENT, 0)
    assert 3 == nearest.preferred_replica(partition, CLIENT._replace(listener="BROKERS"), 0)
    unheard = NearestReplica(MetadataCache(1, "cluster"), clock)
    assert unheard.preferred_replica(partition, CLIENT, 0) is None


def test_of_two_that_have_as_much_the_one_caught_up_last_is_read_from() -> None:
    clock = ManualClock()
    partition = followed(clock)
    client = FetchClient("b", "BROKERS")
    cache = cache_of(b1="a")
    cache.update(1, [BrokerNode(i, (Endpoint("BROKERS", "x", 1),), "b") for i in (2, 3)], {}, {})
    clock.advance(50)
    fetched(partition, 0, 3)
    clock.advance(50)
    fetched(partition, 0, 2)
    assert 2 == NearestReplica(cache, clock).preferred_replica(partition, client, 0)


def test_a_consumer_that_knows_another_epoch_is_sent_nowhere() -> None:
    clock = ManualClock()
    ports = ports_of()._replace(nearest=NearestReplica(cache_of(b1="a"), clock))
    manager = ReplicaManager(clock, ports)
    manager.add(followed(clock))
    params = FetchParams(max_wait_ms=0, client=CLIENT, is_leader_required=False)
    results = manager.fetch(params, [(PARTITION, FetchSpec(0, 100, current_leader_epoch=7))])
    assert isinstance(results, list)
    assert [75] == [result.error.code for _, result in results if result.error]


def test_a_fetch_is_answered_with_the_replica_to_read_from_or_with_records() -> None:
    clock = ManualClock()
    ports = ports_of()._replace(nearest=NearestReplica(cache_of(b1="a"), clock))
    manager, partition = ReplicaManager(clock, ports), followed(clock)
    manager.add(partition)
    assert (True, False) == (manager.sends_elsewhere, Broker().manager.sends_elsewhere)
    partition.append(sent(), 1)
    for rack_id, preferred in (("b", 2), ("a", None)):
        params = FetchParams(
            max_wait_ms=0, client=FetchClient(rack_id, "CLIENTS"), is_leader_required=False
        )
        results = manager.fetch(params, [(PARTITION, FetchSpec(0, 1 << 20))])
        assert isinstance(results, list)
        assert preferred == results[0][1].preferred_replica
        assert (preferred is None) == (results[0][1].records is not None)
