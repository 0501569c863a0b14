"""The verb balance: searches in rounds, until a plan of the result changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from engine.planner.byte_balancing import ByteBalancing
from engine.planner.byte_bound import fewest_moves_for_bytes, fewest_moves_for_bytes_alone
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import LevelGoal, PlanConstraints
from engine.planner.count_targets import moves_between
from engine.planner.iterated_search import search_until_stable
from engine.planner.level_targets import TargetRule, find_targets
from engine.planner.move_saving import MoveSaving
from engine.planner.placement_state import UNBOUNDED, PlacementState
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_building import PlanFindings, build_plan
from engine.planner.rate_balancing import RateBalancing, RateState, fewest_moves_for_rates
from engine.planner.rate_leaders import RateLeaders
from engine.planner.search_steps import (
    changed_partitions,
    level_all_leaders,
    level_counts,
    level_leaders,
)


def balance_in_rounds(
    model: ClusterModel, goals: Collection[LevelGoal], constraints: PlanConstraints, small: bool
) -> ReassignmentPlan:
    """Return the plan of a balance; with `small`, the smallest replicas move first.

    Rounds are repeated until one changes nothing. With a budget of moves or bytes there is one
    round: a later plan continues from its result.
    """
    rounds: list[_Round] = []

    def search(state: PlacementState, _: PlanFindings) -> None:
        """Balance once and keep the round's bounds and findings."""
        rounds.append(_balance_once(state, goals, small))

    state = PlacementState(model, constraints)
    before, unused = list(state.counts), PlanFindings("balance")
    search(state, unused)
    last = state
    if constraints.is_unlimited:
        last = search_until_stable(
            state, model, unused, lambda at: PlacementState(at, constraints), search
        )
    notes = rounds[-1].notes
    notes.bound_moves = _moves_bound(rounds[0], rounds[-1], before, last)
    if LevelGoal.LEADERS in goals:
        add_preferred_elections(state, notes)
    return build_plan(state, notes)


class _Round(NamedTuple):
    """One search.

    The fewest moves for each goal from its start, and whether the goals are reached.
    """

    notes: PlanFindings
    for_counts: int
    for_bytes: int
    for_rates: int
    #: If counts are a goal, the bounds for bytes and rates are those of plans that level counts
    #: too.
    is_level_in_counts: bool
    is_level_in_bytes: bool
    is_level_in_rates: bool


def _moves_bound(first: _Round, last: _Round, before: Sequence[int], end: PlacementState) -> int:
    """Return a lower bound of the number of moves for the balance that was reached.

    `before` are the counts before the first round, `end` is the search of the last one. The bound
    of a goal that was not reached does not count. If a budget ended the search early, the counts
    that were reached give the bound.
    """
    ended = {b: end.counts[b] for b in range(len(before))}
    for_counts = first.for_counts
    if not first.notes.unmet:
        for_counts = min(for_counts, moves_between(before, ended))
    if not last.is_level_in_counts:
        return for_counts
    return max(
        for_counts,
        first.for_bytes if last.is_level_in_bytes else 0,
        first.for_rates if last.is_level_in_rates else 0,
    )


def _balance_once(state: PlacementState, goals: Collection[LevelGoal], small: bool) -> _Round:
    """Balance once: counts, bytes, bytes in, leaders and bytes out, as far as they are goals.

    Each step keeps the results of the earlier ones. Returns the round's bounds and findings.
    """
    notes = PlanFindings("balance")
    constraints = state.constraints
    tolerance = constraints.bytes_tolerance
    has_bytes = LevelGoal.BYTES in goals
    rates = RateState(state) if LevelGoal.BYTES_IN in goals else None
    # The target counts, if counts are a goal.
    targets = find_targets(state, TargetRule.ALL_LEVEL) if LevelGoal.COUNTS in goals else None
    for_bytes = _moves_for_bytes(state, targets, tolerance) if has_bytes else 0
    for_rates = 0 if rates is None else fewest_moves_for_rates(rates, targets)
    is_level_in_counts = LevelGoal.COUNTS not in goals or level_counts(
        state, notes, TargetRule.ALL_LEVEL, small=small, path_cost=2
    )
    balancing = ByteBalancing(
        state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
    )
    balancing.level_free()
    if has_bytes:
        _level_bytes(state, balancing)
    is_level_in_rates = rates is not None and _level_rates(
        rates, notes, balancing, keeps_bytes=has_bytes
    )
    is_level_in_bytes = has_bytes and _warn_unless_level(
        notes, "bytes", balancing.highest(), tolerance
    )
    if LevelGoal.LEADERS in goals:
        level_all_leaders(state, notes)
    else:
        level_leaders(state, changed_partitions(state))
    if LevelGoal.BYTES_OUT in goals:
        highest = RateLeaders(state, keeps_counts=LevelGoal.LEADERS in goals).level()
        _warn_unless_level(notes, "bytes out", highest, constraints.rate_tolerance)
    return _Round(
        notes,
        notes.bound_moves,
        for_bytes,
        for_rates,
        is_level_in_counts,
        is_level_in_bytes,
        is_level_in_rates,
    )


def _level_rates(
    rates: RateState, notes: PlanFindings, balancing: ByteBalancing, *, keeps_bytes: bool
) -> bool:
    """Level bytes in by exchanges that keep counts, and bytes if `keeps_bytes`.

    Returns True if bytes in are level then; otherwise adds a warning.
    """
    constraints = rates.constraints
    tolerance = constraints.bytes_tolerance if keeps_bytes else UNBOUNDED
    rates.follow()
    most_bytes = [expected * tolerance for expected in balancing.expected]
    highest = RateBalancing(rates, most_bytes).level()
    rates.hand_back()
    return _warn_unless_level(notes, "bytes in", highest, constraints.rate_tolerance)


def _warn_unless_level(notes: PlanFindings, goal: str, highest: float, tolerance: float) -> bool:
    """Return True if the highest load is within the tolerance; otherwise add a warning.

    `highest` and `tolerance` are multiples of the level for a broker.
    """
    is_level = highest <= tolerance
    if not is_level:
        notes.warnings.append(
            f"{goal} cannot be level: {highest:.2f} times its level for a broker is the best "
            "that was found"
        )
    return is_level


def _level_bytes(state: PlacementState, balancing: ByteBalancing) -> None:
    """Level bytes, and cancel moves that are unnecessary for that, until none can be cancelled."""
    tolerance = state.constraints.bytes_tolerance
    balancing.level_paid(tolerance)
    moves = state.moves
    while MoveSaving(state, balancing.expected, tolerance).save():
        balancing.level_paid(tolerance)
        if state.moves >= moves:
            return
        moves = state.moves


def _moves_for_bytes(
    state: PlacementState, targets: Mapping[int, int] | None, tolerance: float
) -> int:
    """Return a lower bound of the moves that level bytes.

    Counts must end at `targets`; None means that they may become uneven.
    """
    if targets is None:
        return fewest_moves_for_bytes_alone(state, tolerance)
    return fewest_moves_for_bytes(state, targets, tolerance)


def add_preferred_elections(state: PlacementState, notes: PlanFindings) -> None:
    """Add an election to the plan for each partition that another replica leads than its first.

    Partitions are left out if they have no leader, may not be changed, or if their first replica
    is lagging or its broker not alive.
    """
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
