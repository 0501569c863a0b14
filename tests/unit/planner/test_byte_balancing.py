"""Replicas that change places so that bytes are level: which of them, and with whom."""

from __future__ import annotations

from collections.abc import Sequence

from engine.planner.byte_balancing import ByteBalancing
from engine.planner.constraints import PlanConstraints
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster


def levelled(
    replicas: Sequence[Sequence[int]], sizes: Sequence[int], tolerance: float
) -> list[int]:
    """Return the bytes of brokers 1, 2 and 3 once they are as level as exchanges make them."""
    state = PlacementState(cluster([None] * 3, replicas, sizes), PlanConstraints())
    ByteBalancing(state).level_paid(tolerance)
    return state.held_bytes


REPLICAS = [(1,), (1,), (2,), (2,), (3,), (3,)]


def test_of_partners_that_are_as_light_the_first_one_exchanges() -> None:
    # Broker 1 holds 8 above the level of 24, the others 4 below it: 16 for 10 helps with either.
    assert [26, 26, 20] == levelled(REPLICAS, [16, 16, 10, 10, 10, 10], 1.0)


def test_the_partner_whose_exchange_comes_nearer_is_taken_though_another_is_lighter() -> None:
    # Broker 1 should lose some 6 of its 32: 16 for 15 of broker 3, the lightest, is too little,
    # 16 for 0 too much, and 16 for 8 of broker 2 about right.
    assert [24, 24, 15] == levelled(REPLICAS, [16, 16, 8, 8, 15, 0], 1.2)


def test_a_free_exchange_is_made_however_little_it_brings() -> None:
    # Broker 3 leaves: of its two the larger one went to broker 1, which holds far too much.
    model = cluster([None] * 3, [(1,), (3,), (3,)], [10_000, 11, 10])
    state = PlacementState(model, PlanConstraints(), leaving=[3])
    smaller, larger = 0, 1
    state.move(larger, 2, 0)
    state.move(smaller, 2, 1)
    ByteBalancing(state).level_free()
    assert [10_010, 11, 0] == state.held_bytes
    assert 2 == state.moves
