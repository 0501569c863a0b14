"""Moves within an assignment: what goes back instead of another, and in which order."""

from __future__ import annotations

from engine.assignors.movements import PartitionMovements
from engine.model import TopicPartition


def key(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def test_a_partition_that_came_the_other_way_goes_back() -> None:
    movements = PartitionMovements()
    assert key(0) == movements.partition_to_move(key(0), "A", "B")
    movements.record(key(0), "A", "B")
    assert key(0) == movements.partition_to_move(key(1), "B", "A")
    assert key(1) == movements.partition_to_move(key(1), "B", "C")
    assert key(1, "u") == movements.partition_to_move(key(1, "u"), "B", "A")


def test_a_partition_that_goes_on_counts_from_its_first_member() -> None:
    movements = PartitionMovements()
    movements.record(key(0), "A", "B")
    movements.record(key(0), "B", "C")
    assert key(0) == movements.partition_to_move(key(1), "C", "A")
    assert key(1) == movements.partition_to_move(key(1), "B", "A")


def test_a_partition_that_is_back_has_not_moved() -> None:
    movements = PartitionMovements()
    movements.record(key(0), "A", "B")
    movements.record(key(0), "B", "A")
    assert key(1) == movements.partition_to_move(key(1), "B", "A")


def test_what_has_moved_before_is_seen_from_where_it_was() -> None:
    movements = PartitionMovements()
    movements.record(key(0), "C", "A")
    movements.record(key(1), "A", "B")
    assert key(0) == movements.partition_to_move(key(1), "B", "C")


def test_of_several_the_first_of_javas_set_goes_back() -> None:
    movements = PartitionMovements()
    for number in (0, 1, 2):
        movements.record(key(number), "A", "B")
    # The sixteen chains of hashes 1077 + 31 x number: 5, 4, 3.
    assert key(2) == movements.partition_to_move(key(9), "B", "A")
    movements.record(key(2), "B", "A")
    assert key(1) == movements.partition_to_move(key(9), "B", "A")
