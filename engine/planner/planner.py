"""The verbs: what an operator wants done, made into a plan.

| verb | must move | may move besides |
|---|---|---|
| spread | nothing | from old brokers to added ones, until counts are level |
| drain | all replicas of the drained brokers | nothing |
| replace | all replicas of the old broker, to the new one | nothing |
| repair | offline replicas; one replica for each rack fault | nothing |
| replication factor | replicas that are added | nothing |
| balance | nothing | anything, for level counts, then for level bytes |
| demote | no replica; leadership of the demoted brokers | nothing |

What must move goes where counts become level, and of all ways to do so, to where bytes do.
Excluded brokers, and dead ones unless they are repaired or drained, take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from engine.errors import EngineError
from engine.planner.byte_levelling import ByteLevelling
from engine.planner.cluster_model import ClusterModel, PartitionModel
from engine.planner.constraints import ALL_GOALS, LevelGoal, PlanConstraints
from engine.planner.count_levelling import level_by_moves, level_by_paths
from engine.planner.count_targets import clamp_to_moves, moves_between
from engine.planner.leader_levelling import LeaderLevelling
from engine.planner.level_targets import TargetRule, find_targets, targets_within_racks
from engine.planner.placement_state import PlacementState
from engine.planner.placing import Homeless, place_all
from engine.planner.plan import ReassignmentPlan, UnmetGoal
from engine.planner.plan_building import PlanNotes, build_plan

#: Plans of plans until one changes nothing more.
_ROUNDS_MAX = 6


class PlanRefused(EngineError):
    """What was asked for is not possible for any partition; `subject` is what it was asked of."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject}: {reason}")


_DEFAULT = PlanConstraints()


def spread(
    model: ClusterModel, added: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Plan moves to added brokers until they hold as much as the others; none among old ones."""
    _check(model, added)
    return _in_budget(constraints, lambda c, small: _spread(model, added, c, small))


def _spread(
    model: ClusterModel, added: Collection[int], constraints: PlanConstraints, small: bool
) -> ReassignmentPlan:
    state = PlacementState(model, constraints, only_receivers=added)
    notes = PlanNotes("spread")
    _level_counts(state, notes, TargetRule.ADDED_RISE, small=small, path_cost=1)
    ByteLevelling(
        state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
    ).level_free()
    _level_all_leaders(state, notes)
    return build_plan(state, notes)


def drain(
    model: ClusterModel, drained: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Plan to empty brokers."""
    _check(model, drained)

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        state = PlacementState(model, c, leaving=drained)
        notes = PlanNotes("drain")
        gone = [state.index_of[broker_id] for broker_id in drained]
        homeless = [Homeless(p, b) for b in sorted(gone) for p in state.on_broker[b]]
        _rehouse(state, notes, homeless, "drain")
        return build_plan(state, notes)

    return _in_budget(constraints, plan)


def replace(
    model: ClusterModel, old: int, new: int, constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Plan to have one broker stand where another stood, in the same places of the order.

    What the new one may not take, because of racks or since it has a replica, goes elsewhere.
    """
    _check(model, (old, new))
    if old == new:
        raise PlanRefused(f"broker {old}", "cannot be replaced by itself")

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        state = PlacementState(model, c, leaving=(old,))
        notes = PlanNotes("replace")
        source, target = state.index_of[old], state.index_of[new]
        if not state.receives[target]:
            raise PlanRefused(f"broker {new}", "is dead or excluded, and cannot take replicas")
        homeless: list[Homeless] = []
        replaced: list[int] = []
        for partition in state.on_broker[source][::-1]:
            notes.bound_moves += state.movable[partition]
            if state.may_move(partition, source, target) and _has_budget(state, partition):
                state.move(partition, source, target)
                replaced.append(partition)
            else:
                homeless.append(Homeless(partition, source))
        notes.bound_moves -= sum(state.movable[item.partition] for item in homeless)
        # What stands in the old one's place stays there, and leads what that led.
        for partition in replaced:
            state.movable[partition] = False
        _rehouse(state, notes, homeless, "replace")
        if state.moves > len(replaced):
            notes.warnings.append(
                f"{state.moves - len(replaced)} replicas cannot go to broker {new} and go elsewhere"
            )
        return build_plan(state, notes)

    return _in_budget(constraints, plan)


def repair(model: ClusterModel, constraints: PlanConstraints = _DEFAULT) -> ReassignmentPlan:
    """Plan new places for offline replicas, and other racks for those that share one needlessly."""
    model.check()
    dead = [b.broker_id for b in model.brokers if not b.is_alive]

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        state = PlacementState(model, c, leaving=dead)
        notes = PlanNotes("repair")
        offline = _offline_replicas(state, notes)
        state.barred.update((i.partition, i.source) for i in offline if i.source is not None)
        _rehouse(state, notes, [*offline, *_rack_faults(state, offline)], "repair")
        _note_rack_faults(state, notes)
        return build_plan(state, notes)

    return _in_budget(constraints, plan)


def set_replication_factor(
    model: ClusterModel, factors: Mapping[str, int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Plan other numbers of replicas, by topic. Leaders stay, and removed replicas level counts."""
    model.check()
    for topic, factor in factors.items():
        if factor < 1:
            raise PlanRefused(f"topic {topic}", "needs at least one replica")
    missing = sorted(set(factors) - {partition.topic for partition in model.partitions})
    if missing:
        raise PlanRefused(f"topic {missing[0]}", "is not there")

    def plan(c: PlanConstraints, _small: bool) -> ReassignmentPlan:
        state = PlacementState(model, c)
        brokers = sum(state.receives)
        for topic, factor in factors.items():
            if factor > brokers:
                raise PlanRefused(
                    f"topic {topic}", f"{factor} replicas do not fit on {brokers} brokers"
                )
        notes = PlanNotes("set-replication-factor")
        homeless = _resize(state, factors)
        _rehouse(state, notes, homeless, "replication factor")
        return build_plan(state, notes)

    return _in_budget(constraints, plan)


def balance(
    model: ClusterModel,
    goals: Collection[LevelGoal] = ALL_GOALS,
    constraints: PlanConstraints = _DEFAULT,
) -> ReassignmentPlan:
    """Plan moves until counts, bytes and leaders are level, as far as each is a goal."""
    model.check()
    return _in_budget(constraints, lambda c, small: _balance(model, goals, c, small))


def _balance(
    model: ClusterModel, goals: Collection[LevelGoal], constraints: PlanConstraints, small: bool
) -> ReassignmentPlan:
    notes = PlanNotes("balance")
    state = PlacementState(model, constraints)
    has_budget = constraints.max_moves is not None or constraints.max_bytes_moved is not None
    reached = model
    for number in range(1 if has_budget else _ROUNDS_MAX):
        at = state if number == 0 else PlacementState(reached, constraints)
        _balance_once(at, notes if number == 0 else PlanNotes("balance"), goals, small)
        if number > 0:
            state.adopt(at)
        if all(tuple(r) == o for r, o in zip(at.replicas, at.original, strict=True)):
            break
        reached = _after(at, model)
    if LevelGoal.LEADERS in goals:
        _elect_preferred(state, notes)
    return build_plan(state, notes)


def _balance_once(
    state: PlacementState, notes: PlanNotes, goals: Collection[LevelGoal], small: bool
) -> None:
    constraints = state.constraints
    if LevelGoal.COUNTS in goals:
        _level_counts(state, notes, TargetRule.ALL_LEVEL, small=small, path_cost=2)
    levelling = ByteLevelling(
        state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
    )
    levelling.level_free()
    if LevelGoal.BYTES in goals:
        levelling.level_paid(constraints.bytes_tolerance)
    if LevelGoal.LEADERS in goals:
        _level_all_leaders(state, notes)
    else:
        _level_leaders(state, _touched(state))


def _after(state: PlacementState, model: ClusterModel) -> ClusterModel:
    """Return the cluster as it is once a search is carried out; elections included."""
    ids = [b.broker_id for b in state.brokers]
    partitions: list[PartitionModel] = []
    for partition, original, replicas in zip(
        state.partitions, state.original, state.replicas, strict=True
    ):
        if tuple(replicas) == original:
            partitions.append(partition)
            continue
        listed = tuple(ids[broker] for broker in replicas)
        sizes = (
            tuple(partition.size_on(broker_id) for broker_id in listed)
            if partition.replica_sizes
            else ()
        )
        arrived = tuple(b for b in listed if b not in partition.replicas)
        isr = (*partition.isr, *arrived) if partition.isr else ()
        partitions.append(
            partition._replace(
                replicas=listed, leader=listed[0], replica_sizes=sizes, log_dirs=(), isr=isr
            )
        )
    return ClusterModel(model.brokers, partitions)


def _elect_preferred(state: PlacementState, notes: PlanNotes) -> None:
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


def demote(
    model: ClusterModel, demoted: Collection[int], constraints: PlanConstraints = _DEFAULT
) -> ReassignmentPlan:
    """Plan other leaders for what brokers lead; no replica moves. The demoted become the last."""
    _check(model, demoted)
    state = PlacementState(model, constraints)
    notes = PlanNotes("demote")
    leaving = {state.index_of[broker_id] for broker_id in demoted}
    first = [p for p, replicas in enumerate(state.replicas) if replicas[0] in leaving]
    levelling = LeaderLevelling(state, (p for p in first if state.movable[p]), demoted=leaving)
    levelling.level()
    for number in first:
        replicas = state.replicas[number]
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


# What the verbs share


def _in_budget(
    constraints: PlanConstraints, plan: Callable[[PlanConstraints, bool], ReassignmentPlan]
) -> ReassignmentPlan:
    """Return a plan that moves no more bytes than allowed: of the smallest replicas, if need be."""
    result = plan(constraints, False)
    budget = constraints.max_bytes_moved
    if budget is None or result.bytes_moved <= budget:
        return result
    result = plan(constraints, True)
    while result.bytes_moved > budget and result.moves:
        moves = min(result.moves - 1, result.moves * budget // result.bytes_moved)
        result = plan(constraints._replace(max_moves=moves), True)
    return result


def _check(model: ClusterModel, asked: Iterable[int]) -> None:
    model.check()
    known = {broker.broker_id for broker in model.brokers}
    for broker_id in asked:
        if broker_id not in known:
            raise PlanRefused(f"broker {broker_id}", "is not in the cluster")


def _has_budget(state: PlacementState, partition: int) -> bool:
    """Tell whether one more copy of a partition is within what may be moved."""
    constraints = state.constraints
    if constraints.max_moves is not None and state.moves >= constraints.max_moves:
        return False
    budget = constraints.max_bytes_moved
    return budget is None or state.bytes_moved + state.sizes[partition] <= budget


def _touched(state: PlacementState) -> list[int]:
    """Return the partitions whose replicas changed."""
    return [
        number
        for number, (original, replicas) in enumerate(
            zip(state.original, state.replicas, strict=True)
        )
        if tuple(replicas) != original
    ]


def _level_counts(
    state: PlacementState, notes: PlanNotes, rule: TargetRule, *, small: bool, path_cost: int
) -> None:
    before = list(state.counts)
    targets = find_targets(state, rule)
    notes.bound_moves += moves_between(before, targets)
    max_moves = state.constraints.max_moves
    if max_moves is not None:
        clamped = clamp_to_moves(before, targets, max(0, max_moves - state.moves))
        if clamped != targets:
            notes.warnings.append("counts are not level yet: that takes more than may be moved")
        targets = clamped
    level_by_moves(state, targets, smallest_first=small)
    level_by_paths(state, targets, max_cost=path_cost, max_moves=max_moves)
    if max_moves is None and any(state.counts[b] != t for b, t in targets.items()):
        again = targets_within_racks(state, rule)
        level_by_moves(state, again, smallest_first=small)
        level_by_paths(state, again, max_cost=path_cost, max_moves=max_moves)


def _rehouse(state: PlacementState, notes: PlanNotes, homeless: list[Homeless], goal: str) -> None:
    """Place replicas, then make level what was placed, by nothing but other places for it."""
    before = list(state.counts)
    wanted = [item for item in homeless if state.movable[item.partition]]
    notes.bound_moves += len(wanted)
    placed = place_all(state, wanted, _has_budget)
    if placed.against_racks:
        notes.warnings.append(
            f"{len(placed.against_racks)} replicas share a rack for want of another"
        )
    for item in (*placed.left, *(i for i in homeless if not state.movable[i.partition])):
        notes.unmet.append(
            UnmetGoal(goal, str(state.partitions[item.partition].name), _why(state, item))
        )
    targets = find_targets(state, TargetRule.NONE_SINKS, before)
    level_by_paths(state, targets, max_cost=0, max_moves=state.constraints.max_moves)
    ByteLevelling(
        state, max_moves=state.constraints.max_moves, max_bytes=state.constraints.max_bytes_moved
    ).level_free()
    _level_leaders(state, _touched(state))


def _why(state: PlacementState, item: Homeless) -> str:
    if not state.movable[item.partition]:
        return "is excluded or pinned"
    if not _has_budget(state, item.partition):
        return "is beyond the moves or bytes that are allowed"
    return "no broker may take a replica: racks, capacity, or it has one already"


def _level_leaders(state: PlacementState, free: Iterable[int]) -> LeaderLevelling:
    levelling = LeaderLevelling(state, (p for p in free if state.movable[p]))
    levelling.level()
    return levelling


def _level_all_leaders(state: PlacementState, notes: PlanNotes) -> None:
    levelling = _level_leaders(state, range(len(state.partitions)))
    leads = [levelling.leads[b] for b in range(len(state.brokers)) if state.in_play[b]]
    if leads and max(leads) - min(leads) > 1:
        notes.warnings.append(
            f"leaders cannot be level: {min(leads)} to {max(leads)} for a broker is the best that "
            "these replicas allow"
        )


def _offline_replicas(state: PlacementState, notes: PlanNotes) -> list[Homeless]:
    """Return the replicas that are offline, of partitions that have another to copy from."""
    found = []
    for number, partition in enumerate(state.partitions):
        gone = [
            broker
            for broker, broker_id in zip(state.original[number], partition.replicas, strict=True)
            if not state.brokers[broker].is_alive or broker_id in partition.offline
        ]
        if not gone:
            continue
        if len(gone) == len(partition.replicas):
            notes.unmet.append(
                UnmetGoal("repair", str(partition.name), "no replica is alive to copy from")
            )
            continue
        found += [Homeless(number, broker) for broker in gone]
    return found


def _rack_faults(state: PlacementState, offline: list[Homeless]) -> list[Homeless]:
    """Return the replicas that should leave their racks; the leader stays where it can."""
    if not state.has_racks:
        return []
    gone = {(item.partition, item.source) for item in offline}
    found = []
    for number, replicas in enumerate(state.replicas):
        if not state.fault_count(number):
            continue
        limit = state.limits.limit(len(replicas))
        by_group: dict[int, list[int]] = {}
        for broker in replicas:
            if (number, broker) not in gone:
                by_group.setdefault(state.group_of[broker], []).append(broker)
        for held in by_group.values():
            held.sort(key=lambda b: (b == replicas[0], -state.counts[b], b))
            found += [
                Homeless(number, broker, leaves_rack=True)
                for broker in held[: len(held) - limit]
                if len(held) > limit
            ]
    return found


def _note_rack_faults(state: PlacementState, notes: PlanNotes) -> None:
    """Say which faults are left."""
    said = {unmet.subject for unmet in notes.unmet}
    for number, partition in enumerate(state.partitions):
        if state.fault_count(number) and str(partition.name) not in said:
            reason = "no broker of another rack may take a replica"
            notes.unmet.append(UnmetGoal("repair", str(partition.name), reason))


def _resize(state: PlacementState, factors: Mapping[str, int]) -> list[Homeless]:
    """Take away what is too much; return what is to be added."""
    added = []
    for number in range(len(state.partitions) - 1, -1, -1):
        factor = factors.get(state.partitions[number].topic)
        if factor is None:
            continue
        replicas = state.replicas[number]
        added += [Homeless(number, None)] * max(0, factor - len(replicas))
        while state.movable[number] and len(replicas) > factor:
            state.remove(number, _least_missed(state, number))
    return added


def _least_missed(state: PlacementState, number: int) -> int:
    """Return the replica to remove: a dead one, one in a crowded rack; the leader last."""
    replicas = state.replicas[number]
    groups = [state.group_of[broker] for broker in replicas]
    return max(
        replicas,
        key=lambda b: (
            not state.brokers[b].is_alive,
            (number, b) in state.lagging,
            b != replicas[0],
            groups.count(state.group_of[b]) if state.has_racks else 0,
            state.counts[b],
            state.held_bytes[b],
            b,
        ),
    )
