"""Where a change stands, as it shows from outside. Source: RSN-1 … RSN-5."""

from __future__ import annotations

import pytest

from engine.client.metadata import PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.planner.plan import PartitionChange
from engine.reassign.phases import MovePhase, ObservedReplica, copied_bytes, phase_of
from tests.unit.reassign.moved_cluster import change

MOVE = change(0, (1, 2), (3, 2))
MOVING = OngoingReassignment((3, 2, 1), (3,), (1,))
DIRS = PartitionChange("t", 0, (1, 2), (1, 2), 1, 1, 10, (), ("/a", "/a"), ("/b", "/a"))


def seen(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = 1) -> PartitionView:
    return PartitionView(0, leader, 5, replicas, isr, ())


def test_what_moves_shows_both_ways() -> None:
    assert ((2, 1), (3, 2)) == (MOVING.original, MOVING.target)


@pytest.mark.parametrize(
    ("partition", "ongoing", "size", "phase"),
    [
        (seen((1, 2), (1, 2)), None, 0, MovePhase.WAITING),
        (seen((2, 1), (1, 2)), None, 0, MovePhase.WAITING),
        (seen((3, 2, 1), (1, 2)), MOVING, 0, MovePhase.A1_ORDERED),
        (seen((3, 2, 1), (1, 2)), MOVING, 1, MovePhase.A2_COPYING),
        (seen((3, 2, 1), (1, 2, 3)), MOVING, 9, MovePhase.B3_ELECTING),
        (seen((3, 2, 1), (1, 2, 3), leader=3), MOVING, 9, MovePhase.B4_SHRINKING),
        (seen((3, 2, 1), (2, 3), leader=3), MOVING, 9, MovePhase.B5_DELETING),
        (seen((3, 2, 1), (2, 3), leader=3), None, 9, MovePhase.B5_DELETING),
        (seen((3, 2), (1, 2, 3), leader=3), None, 9, MovePhase.B5_DELETING),
        (seen((3, 2), (2, 3), leader=3), None, 9, MovePhase.DONE),
        (seen((3, 2), (2,), leader=2), None, 9, MovePhase.DONE),
        (seen((4, 2), (2,), leader=2), None, 9, MovePhase.ELSEWHERE),
        (seen((4, 2, 1), (2,)), OngoingReassignment((4, 2, 1), (4,), (1,)), 9, MovePhase.REPLACED),
        (None, None, 0, MovePhase.GONE),
        (None, MOVING, 0, MovePhase.GONE),
    ],
)
def test_each_state_has_its_phase(
    partition: PartitionView | None,
    ongoing: OngoingReassignment | None,
    size: int,
    phase: MovePhase,
) -> None:
    assert phase is phase_of(MOVE, partition, ongoing, {3: ObservedReplica(size, "/a")})


def test_a_directory_is_moved_until_the_replica_lies_there() -> None:
    partition = seen((1, 2), (1, 2))
    moving = {1: ObservedReplica(8, "/a", 3, "/b"), 2: ObservedReplica(8, "/a")}
    assert MovePhase.MOVING_DIRECTORY is phase_of(DIRS, partition, None, moving)
    assert (3, 8) == copied_bytes(DIRS, partition, moving)
    assert (0, 8) == copied_bytes(DIRS, partition, {1: ObservedReplica(8, "/a")})
    assert MovePhase.WAITING is phase_of(DIRS, partition, None, {1: ObservedReplica(8, "/a")})
    elsewhere = {1: ObservedReplica(8, "/a", 3, "/c")}
    assert MovePhase.WAITING is phase_of(DIRS, partition, None, elsewhere)
    there = {1: ObservedReplica(8, "/b")}
    assert MovePhase.DONE is phase_of(DIRS, partition, None, there)
    assert (8, 8) == copied_bytes(DIRS, partition, there)


def test_a_directory_of_a_silent_broker_is_neither_moved_nor_not() -> None:
    partition = seen((1, 2), (2,), leader=2)
    assert MovePhase.UNKNOWN is phase_of(DIRS, partition, None, {2: ObservedReplica(8, "/a")})
    assert MovePhase.UNKNOWN is phase_of(DIRS, partition, None, {})
    assert (0, 0) == copied_bytes(DIRS, partition, {})


@pytest.mark.parametrize(
    ("isr", "there", "copied"),
    [
        ((1, 2), {}, (0, 1000)),
        ((1, 2), {3: ObservedReplica(7, "/a")}, (7, 1000)),
        ((1, 2), {1: ObservedReplica(50, "/a"), 3: ObservedReplica(7, "/a")}, (7, 50)),
        ((1, 2), {1: ObservedReplica(50, "/a"), 3: ObservedReplica(70, "/a")}, (50, 50)),
        ((1, 2, 3), {1: ObservedReplica(50, "/a"), 3: ObservedReplica(49, "/a")}, (50, 50)),
    ],
)
def test_copied_bytes_never_pass_what_there_is(
    isr: tuple[int, ...], there: dict[int, ObservedReplica], copied: tuple[int, int]
) -> None:
    assert copied == copied_bytes(MOVE, seen((3, 2, 1), isr), there)
