from __future__ import annotations

import pytest

from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.read_replicas import ReadReplicas
from engine.client.settings import Address
from engine.host.memory import ManualClock
from engine.model import TopicPartition

P0 = TopicPartition("t", 0)


def view(*brokers: int, offline: tuple[int, ...] = ()) -> ClusterView:
    partition = PartitionView(0, 1, 0, (1, 2), (1, 2), offline)
    topic = TopicView("t", bytes(16), False, (partition,))
    live = {number: BrokerView(number, Address("h", number)) for number in brokers}
    return ClusterView("c", 1, live, {"t": topic})


def test_a_replica_is_read_from_until_its_time_is_over() -> None:
    clock = ManualClock()
    replicas = ReadReplicas(clock, 1_000)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    replicas.note(P0, -1)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    replicas.note(P0, 2)
    clock.advance(999)
    assert 2 == replicas.choose(P0, 1, view(1, 2))
    clock.advance(1)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    assert not replicas.forget(P0)


@pytest.mark.parametrize("down", [view(1), view(1, 2, offline=(2,)), view(1, 2)])
def test_a_replica_that_is_down_is_left_for_the_leader_for_good(down: ClusterView) -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    replicas.note(P0, 2)
    if down == view(1, 2):
        down = down._replace(topics={})
    assert 1 == replicas.choose(P0, 1, down)
    assert 1 == replicas.choose(P0, 1, view(1, 2))


def test_one_that_was_forgotten_is_not_read_from() -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    replicas.note(P0, 2)
    assert replicas.forget(P0)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
