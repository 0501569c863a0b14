"""Whether a broker that was drained is empty."""

from __future__ import annotations

from engine.client.reassignments import alter_reassignments
from engine.model import TopicPartition
from engine.reassign.emptying import replicas_left
from tests.unit.reassign.memory_streams import client_of
from tests.unit.reassign.moved_cluster import MovedTopic


def test_a_broker_that_has_not_deleted_its_replicas_yet_is_asked_again() -> None:
    moved = MovedTopic()
    targets = {0: (3, 2), 1: (2, 3), 2: (3, 2), 3: (2, 3)}
    keys = {TopicPartition("t", number): ids for number, ids in targets.items()}
    other = client_of(moved.cluster)

    def delete() -> None:
        moved.streams.on_wait = lambda: None
        alter_reassignments(other, keys)

    moved.streams.on_wait = delete
    assert 0 == replicas_left(moved.client, 1)


def test_replicas_that_stay_are_counted_when_the_time_is_over() -> None:
    moved = MovedTopic()
    assert 4 == replicas_left(moved.client, 1)
    assert 0 == replicas_left(moved.client, 9)
