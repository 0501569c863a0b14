"""From the targets of a plan's file to changes of the cluster as it is now. Pure.

A plan of Kafka's own tool says where replicas go and nothing else: what there is now comes from
the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.client.metadata import ClusterView, PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.cluster_model import ClusterModel, PartitionModel
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.reassign.scheduling import PlanOrder


class NotInCluster(EngineError):
    """A plan names partitions that the cluster does not have."""

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = partitions
        self.hint = "look whether the plan is for this cluster (-b, --context)"
        more = f" and {len(partitions) - 1} more" if len(partitions) > 1 else ""
        super().__init__(f"the plan names {partitions[0]}{more}, which the cluster does not have")


class PlanTarget(NamedTuple):
    """Where a plan wants one partition; `log_dirs` are empty or go along with the replicas."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()

    @property
    def name(self) -> TopicPartition:
        """Return topic and number."""
        return TopicPartition(self.topic, self.partition)


def changes_to(targets: Iterable[PlanTarget], model: ClusterModel) -> list[PartitionChange]:
    """Return what is to change so that partitions are as wanted; raises NotInCluster.

    Those that are there already are in it too: they end at the first look.
    """
    known = {partition.name: partition for partition in model.partitions}
    missing = [target.name for target in targets if target.name not in known]
    if missing:
        raise NotInCluster(missing)
    return [change_to(target, known[target.name]) for target in targets]


def change_to(target: PlanTarget, partition: PartitionModel) -> PartitionChange:
    """Return the change of one partition."""
    log_dirs = target.log_dirs if set(target.log_dirs) - {"any"} else ()
    return PartitionChange(
        partition.topic,
        partition.partition,
        partition.replicas,
        target.replicas,
        partition.leader,
        target.replicas[0],
        partition.size_bytes,
        partition.replica_sizes,
        partition.log_dirs if log_dirs else (),
        log_dirs,
    )


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


def order_of(plan: ReassignmentPlan) -> PlanOrder:
    """Return a plan's order; with barriers if a broker could hold too much in any other."""
    is_tight = any(
        broker.capacity_bytes is not None
        and broker.before.size_bytes + broker.bytes_in > broker.capacity_bytes
        for broker in plan.brokers
    )
    return PlanOrder(plan.batches, is_tight)
