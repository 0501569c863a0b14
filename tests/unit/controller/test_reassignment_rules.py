"""What a reassignment makes of replicas, and what may be asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.controller.reassignment_rules import (
    check_replicas,
    is_caught_up,
    is_reassigning,
    original_replicas,
    plan_reassignment,
    reassigned,
    target_replicas,
)
from engine.kafka_errors import INVALID_REPLICA_ASSIGNMENT
from engine.znode.values import PartitionAssignment

REST = PartitionAssignment((1, 2))
MOVING = PartitionAssignment((3, 2, 1), (3,), (1,))

replica_lists = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(tuple)


def test_the_target_comes_first_and_then_what_is_left_of_the_original() -> None:
    assert reassigned(REST, (3, 2)) == MOVING
    assert original_replicas(MOVING) == (2, 1)
    assert target_replicas(MOVING) == (3, 2)


def test_another_request_counts_from_the_original() -> None:
    assert PartitionAssignment((4, 2, 1), (4,), (2, 1)) == reassigned(MOVING, (4,))


def test_cancelling_is_a_move_to_the_original() -> None:
    assert plan_reassignment(MOVING, None) == PartitionAssignment((2, 1))
    assert plan_reassignment(REST, None) is None


def test_a_new_order_alone_moves_nothing() -> None:
    assert PartitionAssignment((2, 1)) == reassigned(REST, (2, 1))
    assert not is_reassigning(reassigned(REST, (2, 1)))


def test_it_is_caught_up_when_all_of_the_target_are_in_sync() -> None:
    assert not is_caught_up(MOVING, (1, 2))
    assert not is_caught_up(MOVING, (3,))
    assert is_caught_up(MOVING, (1, 2, 3))
    assert is_caught_up(MOVING, (2, 3))
    assert is_caught_up(REST, ())


@given(replica_lists, st.lists(replica_lists, min_size=1, max_size=4))
def test_any_series_of_reassignments_keeps_the_original_replicas(
    original: tuple[int, ...], targets: list[tuple[int, ...]]
) -> None:
    assignment = PartitionAssignment(original)
    for target in targets:
        assignment = reassigned(assignment, target)
        assert target_replicas(assignment) == target
        assert set(original_replicas(assignment)) == set(original)
        assert set(assignment.adding_replicas) == set(target) - set(original)
        assert set(assignment.removing_replicas) == set(original) - set(target)
        assert len(set(assignment.replicas)) == len(assignment.replicas)


def test_refusals_say_what_kafka_says() -> None:
    messages = {
        (): "Empty replica list specified in partition reassignment.",
        (1, 1): "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)",
        (1, -1): "Invalid broker id in replica list: ArrayBuffer(1, -1)",
        (1, 9, 8): "Replica assignment has brokers that are not alive. "
        "Replica list: ArrayBuffer(9, 8), live broker list: Set(1, 3)",
    }
    for target, message in messages.items():
        refusal = check_replicas(REST, target, [1, 3])
        assert refusal is not None
        assert (INVALID_REPLICA_ASSIGNMENT, message) == refusal


def test_only_replicas_that_are_new_must_be_alive() -> None:
    assert check_replicas(REST, (2, 3), [1, 3]) is None
    assert check_replicas(REST, (0, 2), [0]) is None
