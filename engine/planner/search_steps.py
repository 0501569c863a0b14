"""Steps that planning commands share.

Balancing, placing replicas, and budgets of moves and bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.planner.byte_balancing import ByteBalancing
from engine.planner.constraints import PlanConstraints
from engine.planner.count_balancing import level_by_moves, level_by_paths
from engine.planner.count_targets import clamp_to_moves, moves_between
from engine.planner.leader_balancing import LeaderBalancing
from engine.planner.level_targets import TargetRule, find_targets, targets_within_racks
from engine.planner.placement_state import PlacementState
from engine.planner.plan import ReassignmentPlan, UnmetGoal
from engine.planner.plan_building import PlanFindings
from engine.planner.replica_placement import ReplicaToPlace, place_replicas


def plan_in_budget(
    constraints: PlanConstraints, plan: Callable[[PlanConstraints, bool], ReassignmentPlan]
) -> ReassignmentPlan:
    """Return a plan that copies no more bytes than the constraints allow.

    If the plan exceeds the budget, it is made once more with the smallest replicas first and, as
    long as necessary, fewer moves.
    """
    result = plan(constraints, False)
    budget = constraints.max_bytes_moved
    if budget is None or result.bytes_moved <= budget:
        return result
    result = plan(constraints, True)
    while result.bytes_moved > budget and result.moves:
        moves = min(result.moves - 1, result.moves * budget // result.bytes_moved)
        result = plan(constraints._replace(max_moves=moves), True)
    return result


def has_budget(state: PlacementState, partition: int) -> bool:
    """Return True if one more copy of a partition is within the budget of moves and bytes."""
    constraints = state.constraints
    if constraints.max_moves is not None and state.moves >= constraints.max_moves:
        return False
    budget = constraints.max_bytes_moved
    return budget is None or state.bytes_moved + state.sizes[partition] <= budget


def changed_partitions(state: PlacementState) -> list[int]:
    """Return the numbers of the partitions whose replicas or their order changed."""
    return [
        number
        for number, (original, replicas) in enumerate(
            zip(state.original, state.replicas, strict=True)
        )
        if tuple(replicas) != original
    ]


def partitions_without_first(state: PlacementState) -> list[int]:
    """Return the numbers of the partitions whose first replica was removed.

    They need another preferred leader.
    """
    return [
        number
        for number, (original, replicas) in enumerate(
            zip(state.original, state.replicas, strict=True)
        )
        if original[0] not in replicas
    ]


def level_counts(
    state: PlacementState,
    notes: PlanFindings,
    rule: TargetRule,
    *,
    small: bool,
    path_cost: int,
) -> bool:
    """Move replicas until counts are level; return True if that was reached.

    A chain of moves over other brokers may have `path_cost` additional moves. The lower bound of
    moves for the result is noted. If a budget ends the search early, the bound for the goal and
    an unmet goal are noted.
    """
    before = list(state.counts)
    targets = find_targets(state, rule)
    needed = moves_between(before, targets)
    max_moves = state.constraints.max_moves
    is_cut_short = False
    if max_moves is not None:
        clamped = clamp_to_moves(before, targets, max(0, max_moves - state.moves))
        is_cut_short = clamped != targets
        targets = clamped
    if is_cut_short:
        reason = f"it takes {needed} moves, more than are allowed"
        notes.unmet.append(UnmetGoal("an equal number of replicas", "brokers", reason))
    level_by_moves(state, targets, smallest_first=small)
    level_by_paths(state, targets, max_cost=path_cost, max_moves=max_moves)
    if max_moves is None and any(state.counts[b] != t for b, t in targets.items()):
        # Counts cannot become level across racks: each rack is balanced by itself.
        again = targets_within_racks(state, rule)
        level_by_moves(state, again, smallest_first=small)
        level_by_paths(state, again, max_cost=path_cost, max_moves=max_moves)
    reached = {b: state.counts[b] for b in targets}
    is_short = max_moves is not None and max_moves - state.moves < path_cost
    if is_short and reached != targets and not is_cut_short:
        is_cut_short = True
        reason = f"what is left takes up to {path_cost} moves for each, more than are allowed"
        notes.unmet.append(UnmetGoal("an equal number of replicas", "brokers", reason))
    notes.bound_moves += needed if is_cut_short else moves_between(before, reached)
    return reached == targets and not is_cut_short


def rehouse(
    state: PlacementState,
    notes: PlanFindings,
    homeless: list[ReplicaToPlace],
    goal: str,
    *,
    keep_leaders: bool = False,
) -> None:
    """Place replicas on other brokers, then improve the balance by moving only those once more.

    `goal` is the name of the goal in messages about replicas that cannot be placed.
    """
    before = list(state.counts)
    wanted = [item for item in homeless if state.movable[item.partition]]
    notes.bound_moves += len(wanted)
    placed = place_replicas(state, wanted, has_budget)
    if placed.against_racks:
        notes.warnings.append(
            f"{len(placed.against_racks)} replicas share a rack for want of another"
        )
    for item in placed.left:
        notes.unmet.append(
            UnmetGoal(goal, str(state.partitions[item.partition].name), _reason_text(state, item))
        )
    note_excluded(state, notes, homeless)
    targets = find_targets(state, TargetRule.NONE_SINKS, before)
    level_by_paths(state, targets, max_cost=0, max_moves=state.constraints.max_moves)
    ByteBalancing(
        state, max_moves=state.constraints.max_moves, max_bytes=state.constraints.max_bytes_moved
    ).level_free()
    level_leaders(
        state, partitions_without_first(state) if keep_leaders else changed_partitions(state)
    )


def note_excluded(
    state: PlacementState,
    notes: PlanFindings,
    homeless: Iterable[ReplicaToPlace],
    kept_is: str = "replica",
) -> None:
    """Add a warning for each broker that keeps replicas of topics that the plan may not change.

    `kept_is` names what it keeps. The operator excluded the topics, so it is not an unmet goal.
    """
    kept: dict[int | None, list[int]] = {}
    for partition, source, _ in homeless:
        if not state.movable[partition]:
            kept.setdefault(source, []).append(partition)
    for source in sorted(kept, key=lambda b: -1 if b is None else b):
        partitions = kept[source]
        names = ", ".join(sorted({state.partitions[p].topic for p in partitions}))
        number = f"{len(partitions)} {kept_is}{'' if len(partitions) == 1 else 's'}"
        subject = "not added:" if source is None else f"broker {_broker_id(state, source)} keeps"
        notes.warnings.append(
            f"{subject} {number} of topics that this plan may not change: {names}"
        )


def _broker_id(state: PlacementState, broker: int) -> int:
    """Return the broker id for a broker's number in the search."""
    return state.brokers[broker].broker_id


def _reason_text(state: PlacementState, item: ReplicaToPlace) -> str:
    """Return the reason why no broker was found for a replica, for the unmet goal."""
    if not has_budget(state, item.partition):
        return "is beyond the moves or bytes that are allowed"
    partition = item.partition
    able = [b for b in range(len(state.brokers)) if state.is_admitted(partition, b)]
    if not able:
        count = sum(state.receives)
        return f"there is no broker for it: of {count} that may take replicas each has one already"
    roomy = [b for b in able if state.fits(partition, b)]
    if not roomy:
        ids = ", ".join(str(state.brokers[b].broker_id) for b in able)
        return f"no broker that has none of it has room: {ids} would be above the capacity"
    if not any(state.fits_rack(partition, b, item.source) for b in roomy):
        return "only brokers of racks that have a replica of it may take one"
    return "what was placed before it left no broker for it"


def level_leaders(state: PlacementState, free: Iterable[int]) -> LeaderBalancing:
    """Choose leaders of the partitions in `free`, as even as their replicas allow."""
    balancing = LeaderBalancing(state, (p for p in free if state.movable[p]))
    balancing.level()
    return balancing


def level_all_leaders(state: PlacementState, notes: PlanFindings) -> None:
    """Choose leaders of all partitions; add a warning if they cannot be level."""
    balancing = level_leaders(state, range(len(state.partitions)))
    leads = [balancing.leads[b] for b in range(len(state.brokers)) if state.in_play[b]]
    if leads and max(leads) - min(leads) > 1:
        notes.warnings.append(
            f"leaders cannot be level: {min(leads)} to {max(leads)} for a broker is the best that "
            "these replicas allow"
        )
