"""Where replicas of new partitions go, against answers of Kafka's own class.

`kafka_assignments.txt` was printed by AdminUtils of 3.9.1: rack set, brokers (1, 3, 5 ...),
replicas, start (of leaders and of the shift), first partition, replicas of 13 partitions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.admin.replica_assignment import (
    Placement,
    assign_replicas,
    check_counts,
    sorted_brokers,
)
from engine.admin.topic_errors import TopicRefused
from engine.host.memory import SeededEntropy
from engine.planner.kafka_assignment import alternate_racks
from engine.replication.metadata_cache import BrokerNode

RACKS = (None, "aabbc", "abcab", "aaabb", ("r2", "r1", "r1", "r2", "r3", "r3"))
ANSWERS = (Path(__file__).parent / "kafka_assignments.txt").read_text().splitlines()


def brokers(count: int, racks: object = None) -> list[BrokerNode]:
    return [BrokerNode(i * 2 + 1, (), racks[i] if racks else None) for i in range(count)]  # type: ignore[index]


def test_assignments_are_those_of_kafka() -> None:
    assert len(ANSWERS) > 100
    for line in ANSWERS:
        *numbers, told = line.split(" ", 5)
        rack_set, count, replicas, start, first = map(int, numbers)
        expected = {
            int(partition): tuple(map(int, ids.split(", ")))
            for partition, ids in re.findall(r"(\d+)=\[([\d, ]+)\]", told)
        }
        placement = Placement(start, start, first)
        assert expected == assign_replicas(
            brokers(count, RACKS[rack_set]), 13, replicas, placement
        ), line


def test_a_new_topic_begins_at_a_random_broker() -> None:
    starts = {Placement.random(SeededEntropy(seed), 5)[:2] for seed in range(50)}
    assert len(starts) > 15


def test_racks_alternate_in_the_order_of_brokers() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert [0, 3, 1, 5, 4, 2] == alternate_racks(racks)
    assert [] == alternate_racks({})


def test_brokers_with_and_without_a_rack_do_not_mix() -> None:
    mixed = [BrokerNode(1, (), "a"), BrokerNode(2, ())]
    with pytest.raises(TopicRefused) as error:
        assign_replicas(mixed, 1, 1, Placement(0, 0))
    assert -1 == error.value.code


def test_brokers_are_counted_by_id() -> None:
    assert [1, 3, 5] == [b.broker_id for b in sorted_brokers(reversed(brokers(3)))]


@pytest.mark.parametrize(
    ("partitions", "replicas", "code", "message"),
    [
        (0, 1, 37, "Number of partitions must be larger than 0."),
        (1, 0, 38, "Replication factor must be larger than 0."),
        (1, 2, 38, "Replication factor: 2 larger than available brokers: 1."),
    ],
)
def test_counts_that_do_not_fit(partitions: int, replicas: int, code: int, message: str) -> None:
    with pytest.raises(TopicRefused) as error:
        check_counts(partitions, replicas, 1)
    assert (code, message) == (error.value.code, error.value.detail)
