from __future__ import annotations

import pytest

from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.read_replicas import ReadReplicas
from engine.client.settings import Address
from engine.host.memory import ManualClock
from engine.model import TopicPartition

P0 = TopicPartition("t", 0)


def view(
    *brokers: int, offline: tuple[int, ...] = (), leader: int = 1, epoch: int = 0
) -> ClusterView:
    partition = PartitionView(0, leader, epoch, (1, 2, 3), (1, 2, 3), offline)
    topic = TopicView("t", bytes(16), False, (partition,))
    live = {number: BrokerView(number, Address("h", number)) for number in brokers}
    return ClusterView("c", 1, live, {"t": topic})


def test_a_replica_is_read_from_until_its_time_is_over() -> None:
    clock = ManualClock()
    replicas = ReadReplicas(clock, 1_000)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    assert not replicas.note(P0, -1, view(1, 2))
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    assert replicas.note(P0, 2, view(1, 2))
    clock.advance(999)
    assert 2 == replicas.choose(P0, 1, view(1, 2))
    clock.advance(1)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
    assert not replicas.forget(P0)


@pytest.mark.parametrize("down", [view(1), view(1, 2, offline=(2,))])
def test_a_replica_that_is_down_is_left_for_good_and_metadata_asked(down: ClusterView) -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    replicas.note(P0, 2, view(1, 2))
    assert replicas.choose(P0, 1, down) is None
    assert 1 == replicas.choose(P0, 1, view(1, 2))


@pytest.mark.parametrize("later", [view(1, 2, 3, leader=3, epoch=1), view(1, 2, 3, epoch=1)])
def test_the_word_of_a_leader_counts_in_its_epoch(later: ClusterView) -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    replicas.note(P0, 2, view(1, 2, 3))
    leader = later.topics["t"].partitions[0].leader
    assert leader == replicas.choose(P0, leader, later)
    assert 1 == replicas.choose(P0, 1, view(1, 2, 3))


def test_a_leader_that_names_itself_names_no_other() -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    assert not replicas.note(P0, 1, view(1, 2))
    assert not replicas.forget(P0)


def test_one_that_was_forgotten_is_not_read_from() -> None:
    replicas = ReadReplicas(ManualClock(), 1_000)
    replicas.note(P0, 2, view(1, 2))
    assert replicas.forget(P0)
    assert 1 == replicas.choose(P0, 1, view(1, 2))
