"""The planning commands: spread, drain, replace, repair, replication factor, balance and demote.

| command | must move | may move as well |
|---|---|---|
| spread | nothing | from old brokers to added ones, until counts are level |
| drain | all replicas of the drained brokers | nothing |
| replace | all replicas of the old broker, to the new one | nothing |
| repair | offline replicas; one replica for each rack fault | nothing |
| replication factor | replicas that are added | nothing |
| balance | nothing | anything, for level counts, then for level bytes |
| demote | no replica; leadership of the demoted brokers | nothing |

Replicas that must move go where counts become level, and if several brokers qualify, where bytes
do.
Excluded brokers, and dead ones unless they are repaired or drained, take no part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from engine.errors import EngineError
from engine.planner.balancing import balance_in_rounds
from engine.planner.byte_balancing import ByteBalancing
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import ALL_GOALS, LevelGoal, PlanConstraints
from engine.planner.iterated_search import search_until_stable
from engine.planner.leader_balancing import LeaderBalancing
from engine.planner.level_targets import TargetRule
from engine.planner.log_dir_balancing import batch_log_dir_moves, plan_log_dirs
from engine.planner.placement_state import PlacementState
from engine.planner.plan import ReassignmentPlan, UnmetGoal
from engine.planner.plan_building import PlanFindings, assemble_plan, build_plan
from engine.planner.repairs import (
    change_replication_factors,
    find_offline_replicas,
    find_rack_faults,
    note_rack_faults,
)
from engine.planner.replica_placement import ReplicaToPlace
from engine.planner.search_steps import (
    changed_partitions,
    has_budget,
    level_all_leaders,
    level_counts,
    note_excluded,
    plan_in_budget,
    rehouse,
)


class PlanRefused(EngineError):
    """Raised if a request is impossible; `subject` is the topic or broker that prevents it."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject}: {reason}")


_DEFAULT = PlanConstraints()


def spread(
    model: ClusterModel, added: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Return a plan that moves replicas from old brokers to `added` ones until counts are level.

    No replica moves between old brokers.
    """
    _check_request(model, added)
    return plan_in_budget(constraints, lambda c, small: _plan_spread(model, added, c, small))


def _plan_spread(
    model: ClusterModel, added: Collection[int], constraints: PlanConstraints, small: bool
) -> ReassignmentPlan:
    """Return a plan of `spread`; bytes and leaders are balanced without further copies.

    `small` moves the smallest replicas first.
    """

    def begin(at: ClusterModel) -> PlacementState:
        """Return a search in which only the added brokers receive replicas."""
        return PlacementState(at, constraints, only_receivers=added)

    def search(state: PlacementState, notes: PlanFindings) -> None:
        """Balance counts, then bytes, then leaders; only added brokers get more replicas."""
        level_counts(state, notes, TargetRule.ADDED_RISE, small=small, path_cost=1)
        ByteBalancing(
            state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
        ).level_free()
        level_all_leaders(state, notes)

    state, notes = begin(model), PlanFindings("spread")
    has_faults = any(map(state.fault_count, range(len(state.replicas))))
    search(state, notes)
    if has_faults and constraints.is_unlimited:
        # Repairing rack faults changes the limits of the racks.
        later = PlanFindings("spread")
        search_until_stable(state, model, later, begin, search)
        notes.bound_moves += later.bound_moves
    return build_plan(state, notes)


def drain(
    model: ClusterModel, drained: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Return a plan that moves all replicas off the drained brokers.

    Raises PlanRefused for a broker that is not in the cluster, and BadClusterModel.
    """
    _check_request(model, drained)

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        """Return the plan under the constraints `c`."""
        state = PlacementState(model, c, leaving=drained)
        notes = PlanFindings("drain")
        gone = [state.index_of[broker_id] for broker_id in drained]
        homeless = [ReplicaToPlace(p, b) for b in sorted(gone) for p in state.on_broker[b]]
        rehouse(state, notes, homeless, "drain")
        return build_plan(state, notes)

    return plan_in_budget(constraints, plan)


def replace(
    model: ClusterModel, old: int, new: int, constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Return a plan that moves a broker's replicas to another one, at the same positions.

    A replica that the new broker may not have, because of racks or because it has one of the
    partition already, goes to a third broker. Raises PlanRefused.
    """
    _check_request(model, (old, new))
    if old == new:
        raise PlanRefused(f"broker {old}", "cannot be replaced by itself")

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        """Return the plan under the constraints `c`."""
        state = PlacementState(model, c, leaving=(old,))
        notes = PlanFindings("replace")
        source, target = state.index_of[old], state.index_of[new]
        if not state.receives[target]:
            raise PlanRefused(f"broker {new}", "is dead or excluded, and cannot take replicas")
        homeless: list[ReplicaToPlace] = []
        replaced: list[int] = []
        for partition in state.on_broker[source][::-1]:
            notes.bound_moves += state.movable[partition]
            if state.may_move(partition, source, target) and has_budget(state, partition):
                state.move(partition, source, target)
                replaced.append(partition)
            else:
                homeless.append(ReplicaToPlace(partition, source))
        notes.bound_moves -= sum(state.movable[item.partition] for item in homeless)
        # Replicas that replaced those of the old broker are not moved again, and keep its
        # leaderships.
        for partition in replaced:
            state.movable[partition] = False
        rehouse(state, notes, homeless, "replace")
        if state.moves > len(replaced):
            notes.warnings.append(
                f"{state.moves - len(replaced)} replicas cannot go to broker {new} and go elsewhere"
            )
        return build_plan(state, notes)

    return plan_in_budget(constraints, plan)


def repair(model: ClusterModel, constraints: PlanConstraints = _DEFAULT) -> ReassignmentPlan:
    """Return a plan of new brokers for offline replicas, and of other racks for rack faults.

    A rack fault is a replica above the limit of its rack.
    """
    model.check()
    dead = [b.broker_id for b in model.brokers if not b.is_alive]

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        """Return the plan under the constraints `c`."""
        state = PlacementState(model, c, leaving=dead)
        notes = PlanFindings("repair")
        offline = find_offline_replicas(state, notes)
        rehouse(state, notes, [*offline, *find_rack_faults(state, offline)], "repair")
        note_rack_faults(state, notes)
        return build_plan(state, notes)

    return plan_in_budget(constraints, plan)


def set_replication_factor(
    model: ClusterModel, factors: Mapping[str, int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Return a plan that changes the replication factors of topics.

    Leaders stay, and replicas are added and removed so that counts become level.
    """
    model.check()
    for topic, factor in factors.items():
        if factor < 1:
            raise PlanRefused(f"topic {topic}", "needs at least one replica")
    missing = sorted(set(factors) - {partition.topic for partition in model.partitions})
    if missing:
        raise PlanRefused(f"topic {missing[0]}", "is not there")

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        """Return the plan under the constraints `c`.

        Raises PlanRefused if a topic would need more replicas than there are brokers.
        """
        state = PlacementState(model, c)
        brokers = sum(state.receives)
        for topic, factor in factors.items():
            if factor > brokers:
                raise PlanRefused(
                    f"topic {topic}", f"{factor} replicas do not fit on {brokers} brokers"
                )
        notes = PlanFindings("set-replication-factor")
        homeless = change_replication_factors(state, factors)
        rehouse(state, notes, homeless, "replication factor", keep_leaders=True)
        shared = sum(state.fault_count(p) > 0 for p in changed_partitions(state))
        if shared:
            notes.warnings.append(
                f"{shared} partitions have replicas that share racks needlessly: repair moves them"
            )
        return build_plan(state, notes)

    return plan_in_budget(constraints, plan)


def balance(
    model: ClusterModel,
    goals: Collection[LevelGoal] = ALL_GOALS,
    constraints: PlanConstraints = _DEFAULT,
) -> ReassignmentPlan:
    """Return a plan that levels counts, bytes, rates and leaders, as far as they are in `goals`."""
    model.check()
    return plan_in_budget(constraints, lambda c, small: balance_in_rounds(model, goals, c, small))


def demote(
    model: ClusterModel, demoted: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Return a plan of other leaders for the partitions that the demoted brokers lead.

    No replica moves; the demoted brokers become the last replicas.
    """
    _check_request(model, demoted)
    state = PlacementState(model, constraints)
    notes = PlanFindings("demote")
    leaving = {state.index_of[broker_id] for broker_id in demoted}
    first = [p for p, replicas in enumerate(state.replicas) if replicas[0] in leaving]
    balancing = LeaderBalancing(state, (p for p in first if state.movable[p]), demoted=leaving)
    balancing.level()
    note_excluded(state, notes, (ReplicaToPlace(p, state.replicas[p][0]) for p in first), "leader")
    for number in first:
        replicas = state.replicas[number]
        if not state.movable[number]:
            continue
        if replicas[0] in leaving:
            notes.unmet.append(
                UnmetGoal(
                    "demote",
                    str(state.partitions[number].name),
                    "no other replica is in sync and may lead",
                )
            )
        else:
            replicas.sort(key=lambda b: b in leaving)
    for number, partition in enumerate(state.partitions):
        leads = partition.leader is not None and state.index_of[partition.leader] in leaving
        if leads and state.replicas[number][0] not in leaving and state.movable[number]:
            notes.elections.add(number)
    return build_plan(state, notes)


def balance_log_dirs(
    model: ClusterModel,
    broker_ids: Collection[int] | None = None,
    constraints: PlanConstraints = _DEFAULT,
) -> ReassignmentPlan:
    """Return a plan that moves replicas between the directories of each broker.

    `broker_ids` None means all brokers.
    """
    _check_request(model, broker_ids or ())
    chosen = [b.broker_id for b in model.brokers] if broker_ids is None else broker_ids
    changes, held = plan_log_dirs(model, chosen, constraints)
    notes = PlanFindings("balance-log-dirs")
    for broker_id in sorted(held):
        sizes = held[broker_id].values()
        mean = sum(sizes) / len(sizes) if sizes else 0
        if sizes and max(sizes) > mean * constraints.bytes_tolerance:
            notes.warnings.append(
                f"broker {broker_id}: a directory keeps {max(sizes) / mean:.2f} times the mean"
            )
    state = PlacementState(model, constraints)
    return assemble_plan(state, notes, changes, batch_log_dir_moves(changes, constraints))


def _check_request(model: ClusterModel, requested: Iterable[int]) -> None:
    """Raise BadClusterModel for a bad model, PlanRefused for an unknown broker."""
    model.check()
    known = {broker.broker_id for broker in model.brokers}
    for broker_id in requested:
        if broker_id not in known:
            raise PlanRefused(f"broker {broker_id}", "is not in the cluster")
