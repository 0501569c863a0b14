"""Three whole brokers replicate: by calls in one process, and over the network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import T0, MemoryCluster

LAG_MS = 10_000
NOT_LEADER, NOT_ENOUGH = 6, 19


@pytest.fixture(params=[True, False], ids=["one process", "network"])
def make(request: pytest.FixtureRequest) -> Callable[..., MemoryCluster]:
    """Return what makes a cluster whose brokers reach each other in one of both ways."""

    def cluster(**settings: str) -> MemoryCluster:
        settings.setdefault("replica_lag_time_max_ms", str(LAG_MS))
        return MemoryCluster(is_one_process=request.param, **settings)

    return cluster


def with_topic(make: Callable[..., MemoryCluster], **settings: str) -> MemoryCluster:
    cluster = make(**settings)
    cluster.create_topic(min_insync_replicas="2")
    return cluster


def assert_same_content(cluster: MemoryCluster, key: TopicPartition = T0) -> None:
    contents = {cluster.content(broker_id, key) for broker_id in cluster.brokers}
    assert 1 == len(contents)
    assert contents != {b""}


def test_acks_of_all_come_when_all_in_sync_have_the_records(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    assert 0 == cluster.produce(1, 5).code()
    assert {1: (5, 5), 2: (5, 0), 3: (5, 0)} == cluster.ends()
    cluster.pass_time(1000)
    assert {1: (5, 5), 2: (5, 5), 3: (5, 5)} == cluster.ends()
    assert_same_content(cluster)
    assert NOT_LEADER == cluster.produce(2).code()


def test_a_leader_that_stops_is_followed_by_another_and_comes_back_in_sync(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    cluster.produce(1, 5)
    cluster.pass_time(1000)
    cluster.stop(1)
    assert 2 == cluster.stored().leader
    assert 0 == cluster.produce(2, 3).code()
    cluster.start(1)
    cluster.pass_time(3000)
    assert (1, 2, 3) == tuple(sorted(cluster.stored().isr))
    assert 0 == cluster.produce(2, 2).code()
    cluster.pass_time(1000)
    assert {1: (10, 10), 2: (10, 10), 3: (10, 10)} == cluster.ends()
    assert_same_content(cluster)


def test_a_leader_without_power_loses_what_nobody_else_has_and_no_more(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(1000)
    for broker_id in (2, 3):
        # Both leave the set by their end; what the leader takes alone is not committed.
        cluster.brokers[broker_id].storage.fetchers.stop(T0)
    assert 0 == cluster.produce(1, 4, acks=1).code()
    assert 9 == cluster.partition(1).log.log_end_offset
    log = cluster.partition(1).log
    log.flush(cluster.clock.wall_ms())
    cluster.cut_power(1)
    assert 2 == cluster.stored().leader
    assert 0 == cluster.produce(2, 2).code()
    cluster.start(1)
    cluster.pass_time(3000)
    assert {1: (7, 7), 2: (7, 7), 3: (7, 7)} == cluster.ends()
    assert_same_content(cluster)
    assert (1, 2, 3) == tuple(sorted(cluster.stored().isr))


def test_a_set_that_shrinks_below_the_minimum_refuses_and_grows_again(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    cluster.produce(1)
    for broker_id in (2, 3):
        cluster.stop(broker_id)
    cluster.pass_time(2 * LAG_MS)
    assert (1,) == cluster.stored().isr
    assert NOT_ENOUGH == cluster.produce(1).code()
    cluster.start(3)
    cluster.pass_time(2000)
    assert (1, 3) == cluster.stored().isr
    assert 0 == cluster.produce(1).code()


def test_a_follower_behind_the_leaders_start_begins_there(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    cluster.stop(3)
    cluster.produce(1, 6)
    cluster.pass_time(1000)
    leader = cluster.partition(1)
    leader.delete_records_before(4)
    cluster.start(3)
    cluster.pass_time(4000)
    own = cluster.partition(3).log
    assert (4, 6) == (own.log_start_offset, own.log_end_offset)
    assert_same_content(cluster)


def test_fetchers_are_shared_out_by_the_hash_and_end_with_their_last_partition(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = make(num_replica_fetchers="2")
    cluster.create_topic("t", [(1, 2), (1, 2), (1, 2)])
    fetchers = cluster.brokers[2].storage.fetchers
    # 31 * 't'.hashCode() is even.
    assert {(1, 0): [0, 2], (1, 1): [1]} == {
        key: [each.partition for each in sorted(one.followed.states)]
        for key, one in fetchers.fetchers.items()
    }
    cluster.stop(1)
    assert {} == fetchers.fetchers


def test_another_number_of_fetchers_shares_out_again(make: Callable[..., MemoryCluster]) -> None:
    cluster = make()
    cluster.create_topic("t", [(1, 2), (1, 2), (1, 2)])
    cluster.pass_time(1000)
    fetchers = cluster.brokers[2].storage.fetchers
    assert [(1, 0)] == list(fetchers.fetchers)
    resource = message_class("IncrementalAlterConfigsRequest").AlterConfigsResource
    wanted = resource(
        resource_type=4,
        resource_name="2",
        configs=[
            message_class("IncrementalAlterConfigsRequest").AlterableConfig(
                name="num.replica.fetchers", config_operation=0, value="2"
            )
        ],
    )
    cluster.ask(2, "IncrementalAlterConfigs", 1, resources=[wanted])
    cluster.pass_time(1000)
    assert [(1, 0), (1, 1)] == sorted(fetchers.fetchers)
    assert 0 == cluster.produce(1, key=TopicPartition("t", 1)).code()


def test_nothing_is_left_on_the_loop_when_all_have_stopped(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make)
    cluster.produce(1)
    for broker_id in (1, 2, 3):
        cluster.stop(broker_id)
    assert [] == cluster.fatal
    # The 500 ms that leaders let fetches wait are over, and nobody fetches again.
    cluster.pass_time(2000)
    assert 0 == cluster.timers.waiting_count


def test_leaders_of_old_releases_write_their_sets_and_the_controller_hears_of_it(
    make: Callable[..., MemoryCluster],
) -> None:
    cluster = with_topic(make, inter_broker_protocol_version="2.6-IV0")
    assert 0 == cluster.produce(1, 5).code()
    cluster.brokers[3].storage.fetchers.close()
    assert 0 == cluster.produce(1, 1, acks=1).code()
    cluster.pass_time(3 * LAG_MS)
    assert (1, 2) == tuple(sorted(cluster.stored().isr))
    for broker in cluster.brokers.values():
        known = broker.metadata_cache.partition(T0)
        assert known is not None
        assert (1, 2) == tuple(sorted(known.isr))
    assert 0 == cluster.produce(1, 2).code()
    cluster.stop(3)
    cluster.start(3)
    cluster.pass_time(15_000)
    assert (1, 2, 3) == tuple(sorted(cluster.stored().isr))
    cluster.stop(1)
    assert 2 == cluster.stored().leader
    assert 0 == cluster.produce(2, 2).code()
    cluster.pass_time(1000)
    assert_same_content(cluster)
