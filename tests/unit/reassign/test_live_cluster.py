"""What an execution sees of a cluster: replicas with their sizes and places, who is silent."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.model import TopicPartition
from engine.reassign.live_cluster import LiveCluster
from engine.reassign.phases import ObservedReplica
from engine.reassign.throttles import LEADER_RATE, ThrottleSetting
from tests.unit.broker.memory_broker import LOG_DIR
from tests.unit.reassign.moved_cluster import T0, MovedTopic, change

GONE = TopicPartition("gone", 0)


@pytest.fixture(scope="module")
def moved() -> MovedTopic:
    return MovedTopic()


def test_a_check_has_the_replicas_of_the_plan_with_their_sizes_and_directories(
    moved: MovedTopic,
) -> None:
    changes = [change(0, (1, 2), (3, 2)), change(0, (1,), (2,), topic="gone")]
    now = LiveCluster(moved.client, changes).read()
    size = len(moved.cluster.content(1))
    replica = ObservedReplica(size, LOG_DIR)
    assert {T0: {1: replica, 2: replica}, GONE: {}} == now.replicas
    assert {T0} == set(now.partitions)
    assert ((1, 2), 1) == (now.partitions[T0].replicas, now.partitions[T0].leader)
    assert (frozenset({1, 2, 3}), frozenset(), {}) == (now.brokers, now.silent, now.ongoing)
    assert frozenset() == now.under_min_isr


def test_a_broker_that_is_gone_reports_nothing_and_is_not_silent() -> None:
    moved = MovedTopic()
    moved.cluster.cut_power(2)
    moved.cluster.pass_time(20_000)
    now = LiveCluster(moved.client, moved.changes).read()
    assert (frozenset({1, 3}), frozenset()) == (now.brokers, now.silent)
    assert {1} == set(now.replicas[T0])


def test_throttles_are_those_of_one_broker_alone(moved: MovedTopic) -> None:
    settings = [
        ThrottleSetting(Resource(ConfigResourceType.BROKER, name), LEADER_RATE)
        for name in ("1", "2")
    ]
    moved.set(ConfigResourceType.BROKER, "", leader_replication_throttled_rate="5")
    moved.set(ConfigResourceType.BROKER, "2", leader_replication_throttled_rate="7")
    moved.cluster.pass_time(2000)
    cluster = LiveCluster(moved.client, moved.changes)
    assert [None, "7"] == list(cluster.throttles(settings).values())
    assert {} == cluster.set_throttles({settings[1]: None, settings[0]: "9"})
    moved.cluster.pass_time(2000)
    assert ["9", None] == list(cluster.throttles(settings).values())
