"""Repeat a search: each one begins with the result of the one before, until nothing changes.

A replica without a possible target may have one after another replica has moved, and a rack with
too many replicas of a partition may get below its limit after one has left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.planner.cluster_model import ClusterModel, PartitionModel
from engine.planner.placement_state import PlacementState
from engine.planner.plan_building import PlanFindings

#: Largest number of repeated searches.
_ROUNDS_MAX: Final = 6


def search_until_stable(
    state: PlacementState,
    model: ClusterModel,
    notes: PlanFindings,
    begin: Callable[[ClusterModel], PlacementState],
    search: Callable[[PlacementState, PlanFindings], None],
) -> PlacementState:
    """Repeat the search from its own result until nothing changes; return the last search.

    The results are merged into `state`. `notes` collects the findings: their bounds add up.
    `begin` creates a search for a model, `search` performs it.
    """
    at = state
    for _ in range(_ROUNDS_MAX - 1):
        if not _has_changed(at):
            return at
        at = begin(_model_after(at, model))
        # Partition numbers are the same in each search, and a replica that left before is still on
        # its broker.
        at.barred |= state.barred
        at.lagging |= state.lagging
        search(at, notes)
        state.adopt(at)
    return at


def _has_changed(state: PlacementState) -> bool:
    """Return True if a search has changed the replicas of a partition or their order."""
    return any(tuple(r) != o for r, o in zip(state.replicas, state.original, strict=True))


def _model_after(state: PlacementState, model: ClusterModel) -> ClusterModel:
    """Return the model of the cluster after the search's changes and the elections they need."""
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
        partitions.append(
            partition._replace(
                replicas=listed,
                leader=listed[0],
                replica_sizes=sizes,
                log_dirs=(),
                isr=_in_sync_after(partition, listed),
                offline=tuple(b for b in partition.offline if b in listed),
            )
        )
    return ClusterModel(model.brokers, partitions)


def _in_sync_after(partition: PartitionModel, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return a partition's ISR once its new replicas have caught up, empty if it is unknown."""
    if not partition.isr:
        return ()
    return tuple(b for b in replicas if b in partition.isr or b not in partition.replicas)
