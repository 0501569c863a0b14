"""Levelling a whole cluster: again and again, until a plan of the result changes nothing."""

from __future__ import annotations

from collections.abc import Collection

from engine.planner.byte_bound import moves_for_bytes
from engine.planner.byte_levelling import ByteLevelling
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import LevelGoal, PlanConstraints
from engine.planner.level_targets import TargetRule
from engine.planner.move_saving import MoveSaving
from engine.planner.placement_state import PlacementState
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_building import PlanNotes, build_plan
from engine.planner.rounds import go_on
from engine.planner.search_steps import (
    level_all_leaders,
    level_counts,
    level_leaders,
    touched,
)


def balance_in_rounds(
    model: ClusterModel, goals: Collection[LevelGoal], constraints: PlanConstraints, small: bool
) -> ReassignmentPlan:
    """Return the plan of a balance; with `small`, the smallest replicas move first.

    What a budget cuts short is planned once: the rest is left for another time.
    """
    notes = PlanNotes("balance")

    def search(state: PlacementState, noted: PlanNotes) -> None:
        _balance_once(state, noted, goals, small)

    state = PlacementState(model, constraints)
    search(state, notes)
    if constraints.is_unlimited:
        go_on(
            state, model, PlanNotes("balance"), lambda at: PlacementState(at, constraints), search
        )
    if LevelGoal.LEADERS in goals:
        elect_preferred(state, notes)
    return build_plan(state, notes)


def _balance_once(
    state: PlacementState, notes: PlanNotes, goals: Collection[LevelGoal], small: bool
) -> None:
    constraints = state.constraints
    tolerance = constraints.bytes_tolerance
    if LevelGoal.COUNTS in goals:
        level_counts(
            state,
            notes,
            TargetRule.ALL_LEVEL,
            small=small,
            path_cost=2,
            bytes_tolerance=tolerance if LevelGoal.BYTES in goals else None,
        )
    elif LevelGoal.BYTES in goals:
        held = {b: count for b, count in enumerate(state.counts) if state.in_play[b]}
        notes.bound_moves = moves_for_bytes(state, held, tolerance)
    levelling = ByteLevelling(
        state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
    )
    levelling.level_free()
    if LevelGoal.BYTES in goals:
        _level_bytes(state, levelling)
    if LevelGoal.LEADERS in goals:
        level_all_leaders(state, notes)
    else:
        level_leaders(state, touched(state))


def _level_bytes(state: PlacementState, levelling: ByteLevelling) -> None:
    """Level bytes, then do without moves that are not needed, until none can be saved."""
    tolerance = state.constraints.bytes_tolerance
    levelling.level_paid(tolerance)
    moves = state.moves
    while MoveSaving(state, levelling.expected, tolerance).save():
        levelling.level_paid(tolerance)
        if state.moves >= moves:
            return
        moves = state.moves


def elect_preferred(state: PlacementState, notes: PlanNotes) -> None:
    """Have those elected who are first but do not lead, where nothing else changes."""
    for number, (partition, replicas) in enumerate(
        zip(state.partitions, state.replicas, strict=True)
    ):
        first = state.brokers[replicas[0]]
        if (
            partition.leader is not None
            and partition.leader != first.broker_id
            and first.is_alive
            and (number, replicas[0]) not in state.lagging
            and state.movable[number]
        ):
            notes.elections.add(number)
