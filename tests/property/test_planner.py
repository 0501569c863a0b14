"""What no plan does on any cluster: generated ones, small and dirty, for every verb.

`make planner-clusters` runs this with some thousands of clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import RATE_GOALS, LevelGoal, PlanConstraints, RackRule
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_checks import find_broken_rules
from engine.planner.planner import (
    balance,
    balance_log_dirs,
    demote,
    drain,
    repair,
    replace,
    set_replication_factor,
    spread,
)
from tests.generated_clusters import after, clusters, with_log_dirs, with_rates

Verb = Callable[[ClusterModel, PlanConstraints], ReassignmentPlan]


@st.composite
def constraint_sets(draw: st.DrawFn) -> PlanConstraints:
    return PlanConstraints(
        excluded_topics=draw(st.sampled_from((frozenset[str](), frozenset({"t1"})))),
        racks=draw(st.sampled_from((RackRule.STRICT, RackRule.STRICT, RackRule.IGNORED))),
        moves_per_broker=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 3)),
    )


def rack_of(model: ClusterModel) -> dict[int, str]:
    return {
        broker.broker_id: broker.rack if broker.rack is not None else f"own {broker.broker_id}"
        for broker in model.brokers
    }


def least_limit(model: ClusterModel, leaving: Collection[int], factor: int) -> int:
    """Return the least number of replicas in a rack with which all find a place."""
    racks = rack_of(model)
    sizes = Counter(
        racks[b.broker_id] for b in model.brokers if b.is_alive and b.broker_id not in leaving
    )
    if sum(sizes.values()) < factor:
        return factor
    return next(
        limit
        for limit in range(1, factor + 1)
        if sum(min(limit, size) for size in sizes.values()) >= factor
    )


def rack_faults(model: ClusterModel, replicas: tuple[int, ...], leaving: Collection[int]) -> int:
    if all(broker.rack is None for broker in model.brokers):
        return 0
    racks = rack_of(model)
    limit = least_limit(model, leaving, len(replicas))
    return sum(max(0, n - limit) for n in Counter(racks[b] for b in replicas).values())


def held_bytes(model: ClusterModel) -> Counter[int]:
    held: Counter[int] = Counter()
    for partition in model.partitions:
        for broker_id in partition.replicas:
            held[broker_id] += partition.size_on(broker_id)
    return held


def assert_never_over_capacity(model: ClusterModel, plan: ReassignmentPlan) -> None:
    """Walk through the batches: a broker with more than its capacity gets nothing."""
    capacity = {b.broker_id: b.capacity_bytes for b in model.brokers}
    held = held_bytes(model)
    partitions = {partition.name: partition for partition in model.partitions}
    for batch in plan.batches:
        got = set()
        for position in batch:
            change = plan.changes[position]
            for broker_id in change.added:
                held[broker_id] += change.size_bytes
                got.add(broker_id)
        for broker_id in got:
            bound = capacity[broker_id]
            assert bound is None or held[broker_id] <= bound
        for position in batch:
            change = plan.changes[position]
            for broker_id in change.removed:
                held[broker_id] -= partitions[change.name].size_on(broker_id)


def assert_harmless(
    model: ClusterModel,
    plan: ReassignmentPlan,
    constraints: PlanConstraints,
    leaving: Collection[int] = (),
) -> None:
    alive = {broker.broker_id for broker in model.brokers if broker.is_alive}
    partitions = {partition.name: partition for partition in model.partitions}
    for change in plan.changes:
        partition = partitions[change.name]
        assert partition.replicas == change.old_replicas
        assert len(set(change.new_replicas)) == len(change.new_replicas) > 0
        assert set(change.added) <= alive - set(leaving)
        assert partition.topic not in constraints.excluded_topics
        if change.new_replicas[0] != partition.replicas[0]:
            able = set(partition.isr) & alive - set(partition.offline) - set(leaving)
            is_able = change.new_leader in able | set(change.added)
            assert is_able or not able & set(change.new_replicas)
        if constraints.racks is RackRule.STRICT:
            before = rack_faults(model, partition.replicas, leaving)
            assert rack_faults(model, change.new_replicas, leaving) <= before
    assert sorted(p for batch in plan.batches for p in batch) == list(range(len(plan.changes)))
    assert_never_over_capacity(model, plan)
    assert [] == find_broken_rules(model, plan, constraints, tuple(leaving))
    assert plan.moves == sum(len(change.added) for change in plan.changes)
    if not plan.unmet:
        assert plan.bound_moves <= plan.moves


def assert_settled(
    model: ClusterModel, plan: ReassignmentPlan, verb: Verb, constraints: PlanConstraints
) -> None:
    """The same again, with facts in any order; and nothing to do afterwards.

    What could not be reached may be within reach once other moves have made room. A broker whose
    directory failed, or that lagged, can do again what it could not once the replica is gone.
    """
    shuffled = ClusterModel(list(model.brokers), list(model.partitions))
    Random(1).shuffle(shuffled.brokers)  # type: ignore[arg-type]
    Random(2).shuffle(shuffled.partitions)  # type: ignore[arg-type]
    assert plan == verb(shuffled, constraints)
    if plan.unmet or leaves_unfit_replicas(model, plan):
        return
    again = verb(after(model, plan), constraints)
    assert 0 == again.moves
    assert [] == [c for c in again.changes if c.new_replicas != c.old_replicas]


def leaves_unfit_replicas(model: ClusterModel, plan: ReassignmentPlan) -> bool:
    """Return True if replicas leave that are offline or not in sync."""
    partitions = {partition.name: partition for partition in model.partitions}
    return any(
        broker_id in partitions[change.name].offline or broker_id not in partitions[change.name].isr
        for change in plan.changes
        for broker_id in change.removed
    )


def count_spread(model: ClusterModel) -> int:
    """Return the widest spread of counts within a rack, of brokers that are alive."""
    counts = Counter({b.broker_id: 0 for b in model.brokers if b.is_alive})
    for partition in model.partitions:
        counts.update(b for b in partition.replicas if b in counts)
    racks = rack_of(model) if any(b.rack for b in model.brokers) else {}
    by_rack: dict[str, list[int]] = {}
    for broker_id, count in counts.items():
        by_rack.setdefault(racks.get(broker_id, ""), []).append(count)
    return max(max(held) - min(held) for held in by_rack.values())


def same_factors(model: ClusterModel, plan: ReassignmentPlan) -> bool:
    return all(len(c.new_replicas) == len(c.old_replicas) for c in plan.changes)


@given(clusters(), constraint_sets(), st.data())
def test_spread_moves_replicas_to_added_brokers_alone(
    model: ClusterModel, constraints: PlanConstraints, data: st.DataObject
) -> None:
    ids = sorted(broker.broker_id for broker in model.brokers)
    added = data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=3))

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return spread(cluster, added, c)

    plan = verb(model, constraints)
    assert_harmless(model, plan, constraints)
    assert same_factors(model, plan)
    assert all(set(change.added) <= added for change in plan.changes)
    assert plan.moves <= plan.bound_moves
    assert_settled(model, plan, verb, constraints)


@given(clusters(), constraint_sets(), st.data())
def test_drain_empties_brokers_and_moves_nothing_else(
    model: ClusterModel, constraints: PlanConstraints, data: st.DataObject
) -> None:
    ids = sorted(broker.broker_id for broker in model.brokers)
    drained = data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=2))

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return drain(cluster, drained, c)

    plan = verb(model, constraints)
    assert_harmless(model, plan, constraints, drained)
    assert same_factors(model, plan)
    assert all(set(change.removed) <= drained for change in plan.changes)
    unmet = {item.subject for item in plan.unmet}
    for partition in after(model, plan).partitions:
        if str(partition.name) not in unmet and partition.topic not in constraints.excluded_topics:
            assert not set(partition.replicas) & drained
    assert_settled(model, plan, verb, constraints)


@given(clusters(), constraint_sets(), st.data())
def test_replace_puts_the_new_broker_where_the_old_one_stood(
    model: ClusterModel, constraints: PlanConstraints, data: st.DataObject
) -> None:
    ids = sorted(broker.broker_id for broker in model.brokers)
    alive = sorted(broker.broker_id for broker in model.brokers if broker.is_alive)
    new = data.draw(st.sampled_from(alive))
    old = data.draw(st.sampled_from([b for b in ids if b != new]))

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return replace(cluster, old, new, c)

    plan = verb(model, constraints)
    assert_harmless(model, plan, constraints, {old})
    assert same_factors(model, plan)
    for change in plan.changes:
        if change.added == (new,):
            assert change.new_replicas.index(new) == change.old_replicas.index(old)
    assert_settled(model, plan, verb, constraints)


@given(clusters(), constraint_sets())
def test_repair_leaves_nothing_offline_that_could_be_repaired(
    model: ClusterModel, constraints: PlanConstraints
) -> None:
    plan = repair(model, constraints)
    dead = {broker.broker_id for broker in model.brokers if not broker.is_alive}
    assert_harmless(model, plan, constraints, dead)
    assert same_factors(model, plan)
    unmet = {item.subject for item in plan.unmet}
    for partition in after(model, plan).partitions:
        if str(partition.name) not in unmet and partition.topic not in constraints.excluded_topics:
            assert not set(partition.replicas) & dead
            assert () == partition.offline
            if constraints.racks is RackRule.STRICT:
                assert 0 == rack_faults(model, partition.replicas, dead)
    assert_settled(model, plan, repair, constraints)


@given(clusters(has_dead=False), constraint_sets(), st.integers(1, 4))
def test_replication_factors_become_what_was_requested(
    model: ClusterModel, constraints: PlanConstraints, factor: int
) -> None:
    factors = {"t0": min(factor, len(model.brokers))}

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return set_replication_factor(cluster, factors, c)

    plan = verb(model, constraints)
    unmet = {item.subject for item in plan.unmet}
    alive = {broker.broker_id for broker in model.brokers}
    partitions = {partition.name: partition for partition in model.partitions}
    for change in plan.changes:
        assert "t0" == change.topic
        assert len(set(change.new_replicas)) == len(change.new_replicas)
        assert set(change.added) <= alive
        assert not (change.added and change.removed)
        if constraints.racks is RackRule.STRICT:
            # Of fewer replicas racks may hold fewer: then the best that stay, online ones.
            kept = list(combinations(change.old_replicas, len(change.new_replicas)))
            offline = set(partitions[change.name].offline)
            fewest = min((len(offline & set(few)) for few in kept), default=0)
            least = min(
                (rack_faults(model, few, ()) for few in kept if len(offline & set(few)) == fewest),
                default=0,
            )
            before = rack_faults(model, change.old_replicas, ())
            assert rack_faults(model, change.new_replicas, ()) <= max(before, least)
    assert_never_over_capacity(model, plan)
    if not plan.unmet:
        assert plan.bound_moves <= plan.moves
    removed_online = [
        change
        for change in plan.changes
        if set(change.removed) - set(partitions[change.name].offline)
        and set(change.new_replicas) & set(partitions[change.name].offline)
    ]
    assert [] == removed_online
    for partition in after(model, plan).partitions:
        if partition.topic == "t0" and str(partition.name) not in unmet:
            assert len(partition.replicas) == factors["t0"]
    assert_settled(model, plan, verb, constraints)


@given(
    clusters(),
    constraint_sets(),
    st.sets(st.sampled_from(list(LevelGoal)), min_size=1).map(frozenset),
)
def test_balance_makes_nothing_worse(
    model: ClusterModel, constraints: PlanConstraints, goals: frozenset[LevelGoal]
) -> None:
    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return balance(cluster, goals, c)

    plan = verb(model, constraints)
    assert_harmless(model, plan, constraints)
    assert same_factors(model, plan)
    if constraints.racks is RackRule.STRICT:
        assert count_spread(after(model, plan)) <= max(1, count_spread(model))
    if goals == {LevelGoal.LEADERS}:
        assert 0 == plan.moves
    assert_settled(model, plan, verb, constraints)


@given(
    clusters(),
    constraint_sets(),
    st.sets(st.sampled_from(list(LevelGoal)), min_size=1).map(frozenset),
    st.integers(0, 2**32),
)
def test_balancing_by_rates_undoes_no_other_level(
    model: ClusterModel, constraints: PlanConstraints, goals: frozenset[LevelGoal], seed: int
) -> None:
    rated = with_rates(model, Random(seed))
    wanted = goals | RATE_GOALS

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return balance(cluster, wanted, c)

    plan = verb(rated, constraints)
    assert_harmless(rated, plan, constraints)
    assert same_factors(rated, plan)
    if constraints.racks is RackRule.STRICT:
        assert count_spread(after(rated, plan)) <= max(1, count_spread(rated))
    assert_settled(rated, plan, verb, constraints)


@given(clusters(), constraint_sets(), st.data())
def test_demoted_brokers_lead_nothing_that_another_could(
    model: ClusterModel, constraints: PlanConstraints, data: st.DataObject
) -> None:
    ids = sorted(broker.broker_id for broker in model.brokers)
    demoted = data.draw(st.sets(st.sampled_from(ids), min_size=1, max_size=2))

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return demote(cluster, demoted, c)

    plan = verb(model, constraints)
    assert_harmless(model, plan, constraints)
    assert 0 == plan.moves
    unmet = {item.subject for item in plan.unmet}
    for partition in after(model, plan).partitions:
        if str(partition.name) not in unmet and partition.topic not in constraints.excluded_topics:
            assert partition.replicas[0] not in demoted or partition.leader is None
    assert_settled(model, plan, verb, constraints)


@given(clusters(), constraint_sets(), st.integers(0, 2**32))
def test_directories_become_level_within_their_brokers(
    model: ClusterModel, constraints: PlanConstraints, seed: int
) -> None:
    full = with_log_dirs(model, Random(seed))

    def verb(cluster: ClusterModel, c: PlanConstraints) -> ReassignmentPlan:
        return balance_log_dirs(cluster, constraints=c)

    plan = verb(full, constraints)
    assert 0 == plan.moves
    assert sorted(p for batch in plan.batches for p in batch) == list(range(len(plan.changes)))
    assert fullest_directory(after(full, plan)) <= fullest_directory(full)
    assert [] == [c for c in plan.changes if c.topic in constraints.excluded_topics]
    for change in plan.changes:
        held = next(p for p in full.partitions if p.name == change.name)
        assert not set(held.offline) & {broker_id for broker_id, *_ in change.log_dir_moves}
    assert [] == verb(after(full, plan), constraints).changes


def fullest_directory(model: ClusterModel) -> int:
    held: Counter[tuple[int, str]] = Counter()
    for partition in model.partitions:
        for broker_id, path in zip(partition.replicas, partition.log_dirs, strict=True):
            held[broker_id, path] += partition.size_on(broker_id)
    return max(held.values())


@given(clusters(), constraint_sets(), st.integers(0, 12), st.integers(0, 8000))
def test_a_budget_is_kept(
    model: ClusterModel, constraints: PlanConstraints, moves: int, size: int
) -> None:
    bounded = constraints._replace(max_moves=moves, max_bytes_moved=size)
    ids = [broker.broker_id for broker in model.brokers]
    for plan in (
        balance(model, constraints=bounded),
        drain(model, ids[:1], bounded),
        spread(model, ids[-1:], bounded),
        repair(model, bounded),
    ):
        assert plan.moves <= moves
        assert plan.bytes_moved <= size
        assert_never_over_capacity(model, plan)
