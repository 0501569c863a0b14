"""Running changes of a cluster, changes that undo a plan, and the order of a plan's changes.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.reassign.execution import StalePlan
from engine.reassign.scheduling import PlanOrder


def ongoing_changes(
    view: ClusterView, ongoing: dict[TopicPartition, OngoingReassignment]
) -> list[PartitionChange]:
    """Return all running reassignments of the cluster as changes, by partition."""
    changes = []
    for key, move in sorted(ongoing.items()):
        partition = view.partition(key)
        leader = partition.leader if partition is not None and partition.has_leader else None
        target = move.target
        changes.append(PartitionChange(*key, move.original, target, leader, target[0]))
    return changes


def reverse_changes(
    changes: Iterable[PartitionChange], now: dict[TopicPartition, PartitionView]
) -> list[PartitionChange]:
    """Return the changes that undo the given ones, for partitions that have the target's replicas.

    A partition with its old replicas, or reassigned by another client meanwhile, is left out.
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
    """Return a plan's changes in the order in which its batches start."""
    return [plan.changes[position] for batch in plan.batches for position in batch]


def check_plan_is_current(
    changes: Iterable[PartitionChange], replicas_now: Mapping[TopicPartition, tuple[int, ...]]
) -> None:
    """Raise StalePlan unless each partition has its replicas from before or after its change.

    So a plan that was executed in part can be resumed and rehearsed.
    """
    stale = [
        change.name
        for change in changes
        if replicas_now.get(change.name) not in (change.old_replicas, change.new_replicas)
    ]
    if stale:
        raise StalePlan(stale)


def order_of(plan: ReassignmentPlan) -> PlanOrder:
    """Return the order in which a plan's changes start.

    It has barriers between the batches if a broker's capacity could be exceeded without them.
    """
    is_tight = any(
        broker.capacity_bytes is not None
        and broker.before.size_bytes + broker.bytes_in > broker.capacity_bytes
        for broker in plan.brokers
    )
    return PlanOrder(plan.batches, is_tight)
