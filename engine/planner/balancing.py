"""Levelling a whole cluster: again and again, until a plan of the result changes nothing."""

from __future__ import annotations

from collections.abc import Collection

from engine.planner.byte_bound import moves_for_bytes
from engine.planner.byte_levelling import ByteLevelling
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import LevelGoal, PlanConstraints
from engine.planner.level_targets import TargetRule, find_targets
from engine.planner.move_saving import MoveSaving
from engine.planner.placement_state import UNBOUNDED, PlacementState
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_building import PlanNotes, build_plan
from engine.planner.rate_leaders import RateLeaders
from engine.planner.rate_levelling import RateLevelling, RateState, moves_for_rates
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
    rates = RateState(state) if LevelGoal.BYTES_IN in goals else None
    for_rates = 0 if rates is None else _moves_for_rates(state, rates, goals)
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
    if rates is not None:
        is_level = _level_rates(rates, notes, levelling, keeps_bytes=LevelGoal.BYTES in goals)
        # What levelling takes is no bound of a plan that cannot reach it.
        notes.bound_moves = max(notes.bound_moves, for_rates if is_level else 0)
    if LevelGoal.LEADERS in goals:
        level_all_leaders(state, notes)
    else:
        level_leaders(state, touched(state))
    if LevelGoal.BYTES_OUT in goals:
        highest = RateLeaders(state, keeps_counts=LevelGoal.LEADERS in goals).level()
        _note_rates(constraints, notes, "out", highest)


def _moves_for_rates(state: PlacementState, rates: RateState, goals: Collection[LevelGoal]) -> int:
    """Return the fewest moves that level bytes in."""
    if LevelGoal.COUNTS in goals:
        targets = find_targets(state, TargetRule.ALL_LEVEL)
    else:
        targets = {b: count for b, count in enumerate(state.counts) if state.in_play[b]}
    return moves_for_rates(rates, targets)


def _level_rates(
    rates: RateState, notes: PlanNotes, levelling: ByteLevelling, *, keeps_bytes: bool
) -> bool:
    """Level bytes in by exchanges that leave counts, and bytes where these are a goal.

    Returns True if they are level then.
    """
    constraints = rates.constraints
    tolerance = constraints.bytes_tolerance if keeps_bytes else UNBOUNDED
    rates.follow()
    most_bytes = [expected * tolerance for expected in levelling.expected]
    highest = RateLevelling(rates, most_bytes).level()
    rates.hand_back()
    return _note_rates(constraints, notes, "in", highest)


def _note_rates(constraints: PlanConstraints, notes: PlanNotes, way: str, highest: float) -> bool:
    """Return True if rates are level; note it if they are not."""
    is_level = highest <= constraints.rate_tolerance
    if not is_level:
        notes.warnings.append(
            f"bytes {way} cannot be level: {highest:.2f} times its level for a broker is the best "
            "that was found"
        )
    return is_level


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
