"""How often the controller waits for the store: no more often for many partitions than for few."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import pytest

from engine.controller.states import PartitionPhase
from engine.limits import CONTROLLER_MULTI_OPERATIONS_MAX
from engine.znode.model import Operation, OperationResult
from engine.znode.values import PartitionAssignment, TopicAssignment, encode_topic
from tests.unit.controller.cluster import Cluster, Node, now


class Rounds:
    """Timers of a distant store: all that was asked before an answer comes is answered together."""

    def __init__(self) -> None:
        self._requested: deque[Callable[[], None]] = deque()
        self.count = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Take a request."""
        self._requested.append(callback)

    def play(self, cluster: Cluster) -> int:
        """Answer until nobody asks; return how many rounds it took."""
        self.count = 0
        cluster.settle()
        while self._requested:
            self.count += 1
            answered, self._requested = self._requested, deque()
            for callback in answered:
                callback()
            cluster.settle()
        return self.count


def distant(cluster: Cluster, broker_id: int) -> tuple[Node, Rounds]:
    """Return a broker that registered and whose controller has not started."""
    node = cluster.nodes[broker_id] = Node(cluster, broker_id)
    rounds = Rounds()
    node.later._timers = rounds  # type: ignore[assignment]
    node.register()
    return node, rounds


def topics_of(cluster: Cluster, topics: int, partitions: int) -> None:
    """Create topics whose replicas are on brokers 1 to 3."""
    brokers = (1, 2, 3)
    for number in range(topics):
        replicas = [
            tuple(brokers[(number + index + shift) % 3] for shift in brokers)
            for index in range(partitions)
        ]
        cluster.create_topic(f"t{number:04}", *replicas, settle=False)
    cluster.settle()


def failover_rounds(topics: int, partitions: int = 4) -> tuple[int, Node]:
    """Return how many round trips a failover takes when a broker died with its controller."""
    cluster = Cluster(3)
    topics_of(cluster, topics, partitions)
    cluster.answers_later = True
    node, rounds = distant(cluster, 4)
    node.controller.start()
    rounds.play(cluster)
    for other in (2, 3):
        # They do not stand.
        cluster.nodes[other].controller.stop()
    cluster.nodes.pop(1).die()
    return rounds.play(cluster), node


def test_a_failover_takes_as_many_round_trips_for_many_partitions_as_for_few() -> None:
    few, _ = failover_rounds(2)
    many, node = failover_rounds(150)
    assert few == many
    assert 40 >= many
    assert [] == node.reporter.failures
    states = [state for state, _ in node.controller.context.leaderships.values()]
    assert 600 == len(states)
    assert {2, 3} == {state.leader for state in states}


@pytest.mark.slow
def test_a_failover_of_ten_thousand_partitions_takes_a_handful_of_round_trips() -> None:
    rounds, node = failover_rounds(1000, 10)
    assert 10_000 == len(node.controller.context.leaderships)
    assert {PartitionPhase.ONLINE} == set(node.controller.context.partition_phases.values())
    # A thousand reads, and a thousand writes, go together.
    assert 150 >= rounds
    assert [] == node.reporter.failures


def growth_rounds(partitions: int) -> int:
    cluster = Cluster(0)
    cluster.answers_later = True
    node, rounds = distant(cluster, 1)
    node.controller.start()
    rounds.play(cluster)
    for broker_id in (2, 3):
        distant(cluster, broker_id)
        rounds.play(cluster)
    cluster.create_topic("t", (1, 2), settle=False)
    rounds.play(cluster)
    path = "/brokers/topics/t"
    grown = {
        index: PartitionAssignment((1 + index % 3, 1 + (index + 1) % 3))
        for index in range(partitions)
    }
    grown[0] = PartitionAssignment((1, 2))
    topic_id = "AAAAAAAAAAAAAAAAAAAAdA"
    now(cluster.admin.set(path, encode_topic(TopicAssignment(topic_id, grown))))
    count = rounds.play(cluster)
    assert partitions == len(cluster.children(f"{path}/partitions"))
    assert [] == node.reporter.failures
    now(cluster.admin.create("/admin/delete_topics/t"))
    count += rounds.play(cluster)
    assert not cluster.exists(path)
    assert not cluster.exists("/config/topics/t")
    return count


def test_growth_and_deletion_take_as_many_round_trips_for_many_partitions_as_for_few() -> None:
    assert growth_rounds(2) == growth_rounds(100)


def test_a_topic_of_many_partitions_is_made_in_transactions_that_a_store_takes() -> None:
    cluster = Cluster(3)
    node = next(node for node in cluster.nodes.values() if node.controller.is_active)
    sizes: list[int] = []
    client = node.controller._machines.parts.znodes.client
    multi = client.multi

    async def noted(operations: Sequence[Operation]) -> list[OperationResult]:
        sizes.append(len(operations))
        return await multi(operations)

    client.multi = noted  # type: ignore[method-assign]
    topics_of(cluster, 1, 1200)
    assert {PartitionPhase.ONLINE} == set(node.controller.context.partition_phases.values())
    assert 1200 == len(node.controller.context.leaderships)
    # One more is the check of the controller's epoch.
    assert CONTROLLER_MULTI_OPERATIONS_MAX + 1 >= max(sizes)
    assert [] == node.reporter.failures
