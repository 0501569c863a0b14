"""Replicas that need not have moved."""

from __future__ import annotations

from engine.planner.byte_balancing import expected_bytes
from engine.planner.constraints import PlanConstraints
from engine.planner.move_saving import MoveSaving
from engine.planner.placement_state import PlacementState
from tests.unit.planner.clusters import cluster

#: Broker 1 has one replica too many, 2 one too large, 3 lacks one.
MODEL = cluster([None] * 3, [(1,), (1,), (1,), (2,), (2,), (3,)], [8, 10, 12, 30, 9, 11])


def numbered(state: PlacementState) -> dict[tuple[str, int], int]:
    return {(p.topic, p.partition): number for number, p in enumerate(state.partitions)}


def test_one_goes_where_the_other_had_gone_and_the_other_stays_home() -> None:
    state = PlacementState(MODEL, PlanConstraints())
    of = numbered(state)
    state.move(of["t", 0], 0, 1)  # for counts: from broker 1 to 2
    state.move(of["t", 4], 1, 2)  # and as many go on from 2 to 3
    assert 2 == state.moves
    assert 1 == MoveSaving(state, expected_bytes(state), 1.5).save()
    assert (1, [2], [1]) == (state.moves, state.replicas[of["t", 0]], state.replicas[of["t", 4]])


def test_one_comes_home_alone_where_counts_stay_as_level() -> None:
    state = PlacementState(MODEL, PlanConstraints())
    of = numbered(state)
    state.move(of["t", 4], 1, 0)
    assert 1 == MoveSaving(state, expected_bytes(state), 1.5).save()
    assert 0 == state.moves


def test_nothing_goes_home_that_makes_a_broker_hold_too_much() -> None:
    model = cluster([None] * 2, [(1,), (1,), (2,), (2,)], [20, 10, 5, 5])
    state = PlacementState(model, PlanConstraints())
    of = numbered(state)
    state.move(of["t", 1], 0, 1)
    state.move(of["t", 2], 1, 0)
    # 25 and 15 now: with its own back, broker 1 would hold 30 of a level of 20.
    assert 0 == MoveSaving(state, expected_bytes(state), 1.02).save()
    assert 2 == state.moves
