"""Changes that no planner made: what moves now, what undoes an execution. A plan's order. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.reassign.scheduling import PlanOrder


def changes_under_way(
    view: ClusterView, ongoing: dict[TopicPartition, OngoingReassignment]
) -> list[PartitionChange]:
    """Return what moves, whoever asked for it, as changes."""
    changes = []
    for key, move in sorted(ongoing.items()):
        partition = view.partition(key)
        leader = partition.leader if partition is not None and partition.has_leader else None
        target = move.target
        changes.append(PartitionChange(*key, move.original, target, leader, target[0]))
    return changes


def back_again(
    changes: Iterable[PartitionChange], now: dict[TopicPartition, PartitionView]
) -> list[PartitionChange]:
    """Return the changes that undo these, as far as partitions are where these brought them.

    What is where it was before is left out; so is what somebody else has moved meanwhile.
    """
    undone = []
    for change in changes:
        partition = now.get(change.name)
        if partition is None or partition.replicas != change.new_replicas:
            continue
        if change.new_replicas == change.old_replicas and not change.log_dir_moves:
            continue
        undone.append(
            PartitionChange(
                change.topic,
                change.partition,
                change.new_replicas,
                change.old_replicas,
                partition.leader if partition.has_leader else None,
                change.old_replicas[0],
                change.size_bytes,
                (),
                change.new_log_dirs,
                change.old_log_dirs if change.new_log_dirs else (),
            )
        )
    return undone


def in_order(plan: ReassignmentPlan) -> list[PartitionChange]:
    """Return a plan's changes, batch by batch."""
    return [plan.changes[position] for batch in plan.batches for position in batch]


def order_of(plan: ReassignmentPlan) -> PlanOrder:
    """Return a plan's order; with barriers if a broker could hold too much in any other."""
    is_tight = any(
        broker.capacity_bytes is not None
        and broker.before.size_bytes + broker.bytes_in > broker.capacity_bytes
        for broker in plan.brokers
    )
    return PlanOrder(plan.batches, is_tight)
