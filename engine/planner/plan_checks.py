"""Rules that no plan may break: checked for our own plans in tests, and for plan files before use.

| rule | broken if |
|---|---|
| duplicate | a partition would have two replicas on one broker |
| unknown | a change names a partition or broker that does not exist |
| stale | the old replicas of a change are not those of the cluster |
| dead | a replica would be created on a broker that is not alive |
| rack | a partition would have more replicas beyond its racks' limit than now |
| capacity | a broker would exceed its capacity at some time, and hold more than now |
| excluded | an excluded topic or pinned partition changes, or an excluded broker receives |
| order | a batch is empty, or a change is in no batch or in two |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.planner.cluster_model import ClusterModel, PartitionModel
from engine.planner.constraints import PlanConstraints, RackRule
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.planner.rack_limits import RackLimits, fault_count, rack_groups


class BrokenRule(NamedTuple):
    """A rule of the table, the broker or partition that breaks it, and the details."""

    rule: str
    subject: str
    detail: str


def find_broken_rules(
    model: ClusterModel,
    plan: ReassignmentPlan,
    constraints: PlanConstraints,
    leaving: Sequence[int] = (),
) -> list[BrokenRule]:
    """Return every rule that a plan breaks in the present cluster.

    `leaving` are the brokers that the plan is to empty.
    """
    partitions = {partition.name: partition for partition in model.partitions}
    broken: list[BrokenRule] = []
    known: list[tuple[PartitionModel, PartitionChange]] = []
    for change in plan.changes:
        partition = partitions.get(change.name)
        if partition is None:
            broken.append(BrokenRule("unknown", str(change.name), "is not in the cluster"))
        else:
            known.append((partition, change))
    for partition, change in known:
        broken += _rules_broken_by_change(model, partition, change)
        broken += _constraints_broken_by_change(partition, change, constraints)
    broken += _broken_rack_limits(model, known, constraints, leaving)
    broken += _broken_batch_order(plan)
    broken += _broken_capacity(model, plan)
    return broken


def _rules_broken_by_change(
    model: ClusterModel, partition: PartitionModel, change: PartitionChange
) -> Iterator[BrokenRule]:
    """Yield the rules that one change breaks by itself: duplicate, stale, unknown, dead."""
    subject = str(change.name)
    replicas = change.new_replicas
    alive = {broker.broker_id: broker.is_alive for broker in model.brokers}
    if len(set(replicas)) < len(replicas) or not replicas:
        yield BrokenRule("duplicate", subject, f"replicas would be {list(replicas)}")
    if change.old_replicas != partition.replicas:
        yield BrokenRule("stale", subject, f"replicas are {list(partition.replicas)} now")
    for broker_id in change.added:
        if broker_id not in alive:
            yield BrokenRule("unknown", subject, f"broker {broker_id} is not in the cluster")
        elif not alive[broker_id]:
            yield BrokenRule("dead", subject, f"broker {broker_id} is not alive")


def _constraints_broken_by_change(
    partition: PartitionModel, change: PartitionChange, constraints: PlanConstraints
) -> Iterator[BrokenRule]:
    """Yield a broken rule for each excluded topic, pinned partition or excluded broker."""
    subject = str(change.name)
    if partition.topic in constraints.excluded_topics or partition.name in constraints.pinned:
        yield BrokenRule("excluded", subject, "is excluded or pinned")
    for broker_id in change.added:
        if broker_id in constraints.excluded_brokers:
            yield BrokenRule("excluded", subject, f"broker {broker_id} is excluded")


def _broken_rack_limits(
    model: ClusterModel,
    changes: Sequence[tuple[PartitionModel, PartitionChange]],
    constraints: PlanConstraints,
    leaving: Sequence[int],
) -> Iterator[BrokenRule]:
    """Yield a broken rule for each change that adds replicas above the limit of a rack."""
    if constraints.racks is not RackRule.STRICT:
        return
    group_of = dict(
        zip(
            (broker.broker_id for broker in model.brokers),
            rack_groups(model.brokers, constraints.racks),
            strict=True,
        )
    )
    limits = RackLimits(
        list(group_of.values()),
        [broker.is_alive and broker.broker_id not in leaving for broker in model.brokers],
    )
    if limits.group_count <= 1:
        return
    for partition, change in changes:
        if not set(change.new_replicas) <= set(group_of):
            continue
        old, new = partition.replicas, change.new_replicas
        before = fault_count(old, group_of, limits.limit(len(old)))
        after = fault_count(new, group_of, limits.limit(len(new)))
        if after > before:
            yield BrokenRule("rack", str(change.name), f"{after} replicas beyond its racks' limit")


def _broken_batch_order(plan: ReassignmentPlan) -> Iterator[BrokenRule]:
    """Yield broken rules unless each change is in exactly one batch and no batch is empty."""
    positions = [position for batch in plan.batches for position in batch]
    if sorted(positions) != list(range(len(plan.changes))):
        yield BrokenRule("order", "batches", "do not name each change once")
    if any(not batch for batch in plan.batches):
        yield BrokenRule("order", "batches", "one is empty")


def _broken_capacity(model: ClusterModel, plan: ReassignmentPlan) -> Iterator[BrokenRule]:
    """Yield a broken rule for each broker that a batch would overfill.

    While a batch runs, its new replicas exist and no old replica is deleted.
    """
    held = {broker.broker_id: 0 for broker in model.brokers}
    for partition in model.partitions:
        for broker_id in partition.replicas:
            held[broker_id] += partition.size_on(broker_id)
    sizes = {partition.name: partition for partition in model.partitions}
    capacity = {b.broker_id: b.capacity_bytes for b in model.brokers}
    for number, batch in enumerate(plan.batches):
        changes = [c for position in batch if (c := plan.changes[position]).name in sizes]
        touched = set()
        for change in changes:
            for broker_id in change.added:
                held[broker_id] = held.get(broker_id, 0) + change.size_bytes
                touched.add(broker_id)
        for broker_id in sorted(touched):
            bound = capacity.get(broker_id)
            if bound is not None and held[broker_id] > bound:
                detail = f"would hold {held[broker_id]} bytes of {bound} in batch {number}"
                yield BrokenRule("capacity", f"broker {broker_id}", detail)
        for change in changes:
            for broker_id in change.removed:
                held[broker_id] -= sizes[change.name].size_on(broker_id)
