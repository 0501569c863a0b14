"""Small clusters for tests of plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.planner.cluster_model import BrokerModel, ClusterModel, PartitionModel
from engine.planner.plan import ReassignmentPlan


def cluster(
    racks: Sequence[str | None],
    replicas: Sequence[Sequence[int]],
    sizes: Sequence[int] | None = None,
    capacity: Mapping[int, int] | None = None,
) -> ClusterModel:
    """Return brokers 1, 2, ... and one topic whose partitions have these replicas."""
    return ClusterModel(
        [
            BrokerModel(number, rack, capacity_bytes=(capacity or {}).get(number))
            for number, rack in enumerate(racks, 1)
        ],
        [
            PartitionModel(
                "t",
                number,
                tuple(listed),
                listed[0],
                size_bytes=10 if sizes is None else sizes[number],
            )
            for number, listed in enumerate(replicas)
        ],
    )


def moved(plan: ReassignmentPlan) -> dict[int, tuple[int, ...]]:
    """Return the new replicas by number of partition."""
    return {change.partition: change.new_replicas for change in plan.changes}
