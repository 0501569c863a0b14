"""The way of placing itself is compared with Kafka's class in tests/unit/admin."""

from __future__ import annotations

from random import Random

import pytest

from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel
from engine.planner.kafka_assignment import MixedRacks, TooFewBrokers, generate_assignment
from tests.unit.planner.clusters import cluster

MODEL = cluster(["a", "b", "c", "a"], [(1, 2, 3)] * 6)


def test_a_proposal_is_for_every_partition_and_on_the_brokers_requested() -> None:
    proposed = generate_assignment(MODEL, [1, 2, 3], ["t"], Random(1))
    assert [TopicPartition("t", number) for number in range(6)] == sorted(proposed)
    assert {frozenset((1, 2, 3))} == {frozenset(replicas) for replicas in proposed.values()}


def test_racks_are_kept_apart_unless_they_do_not_matter() -> None:
    apart = generate_assignment(MODEL, [1, 2, 3, 4], ["t"], Random(1))
    assert all(not {1, 4} <= set(replicas) for replicas in apart.values())
    ignored = generate_assignment(MODEL, [1, 2, 3, 4], ["t"], Random(1), rack_aware=False)
    assert any({1, 4} <= set(replicas) for replicas in ignored.values())


def test_brokers_without_racks_have_all_requested_replicas_each_on_another() -> None:
    model = cluster([None] * 4, [(1, 2, 3)] * 6)
    for replicas in generate_assignment(model, [1, 2, 3, 4], ["t"], Random(1)).values():
        assert (3, 3) == (len(replicas), len(set(replicas)))


def test_topics_that_are_not_there_are_left_out() -> None:
    assert {} == generate_assignment(MODEL, [1, 2, 3], ["other"], Random(1))


def test_too_few_brokers_and_mixed_racks_are_refused() -> None:
    with pytest.raises(TooFewBrokers, match="topic t needs 3 brokers"):
        generate_assignment(MODEL, [1, 2], ["t"], Random(1))
    mixed = MODEL._replace(brokers=[*MODEL.brokers[:3], BrokerModel(4)])
    with pytest.raises(MixedRacks, match="4 have none"):
        generate_assignment(mixed, [1, 2, 3, 4], ["t"], Random(1))
