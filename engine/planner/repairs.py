"""Choice of replicas to move in a repair, and to add or remove for another replication factor."""

from __future__ import annotations

from collections.abc import Mapping

from engine.planner.placement_state import PlacementState
from engine.planner.plan import UnmetGoal
from engine.planner.plan_building import PlanFindings
from engine.planner.replica_placement import ReplicaToPlace


def find_offline_replicas(state: PlacementState, notes: PlanFindings) -> list[ReplicaToPlace]:
    """Return the offline replicas of partitions that have a live replica from which to copy.

    A partition without a live replica becomes an unmet goal. If the plan may not change that
    partition, its replicas are returned nevertheless, and `rehouse` reports them as excluded.
    """
    found = []
    for number, partition in enumerate(state.partitions):
        gone = [
            broker
            for broker, broker_id in zip(state.original[number], partition.replicas, strict=True)
            if not state.brokers[broker].is_alive or broker_id in partition.offline
        ]
        if not gone:
            continue
        if len(gone) == len(partition.replicas) and state.movable[number]:
            notes.unmet.append(
                UnmetGoal("repair", str(partition.name), "no replica is alive to copy from")
            )
            continue
        found += [ReplicaToPlace(number, broker) for broker in gone]
    return found


def find_rack_faults(state: PlacementState, offline: list[ReplicaToPlace]) -> list[ReplicaToPlace]:
    """Return the replicas that should move to another rack; a leader is chosen last.

    Replicas in `offline` are not counted: they are moved anyway.
    """
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
                ReplicaToPlace(number, broker, leaves_rack=True)
                for broker in held[: len(held) - limit]
                if len(held) > limit
            ]
    return found


def note_rack_faults(state: PlacementState, notes: PlanFindings) -> None:
    """Add an unmet goal for each partition that still has too many replicas in a rack."""
    noted = {unmet.subject for unmet in notes.unmet}
    for number, partition in enumerate(state.partitions):
        if not state.movable[number]:
            continue
        if state.fault_count(number) and str(partition.name) not in noted:
            reason = "no broker of another rack may take a replica"
            notes.unmet.append(UnmetGoal("repair", str(partition.name), reason))


def change_replication_factors(
    state: PlacementState, factors: Mapping[str, int]
) -> list[ReplicaToPlace]:
    """Remove surplus replicas for the new replication factors by topic; return those to add."""
    added = []
    for number in range(len(state.partitions) - 1, -1, -1):
        factor = factors.get(state.partitions[number].topic)
        if factor is None:
            continue
        replicas = state.replicas[number]
        added += [ReplicaToPlace(number, None)] * max(0, factor - len(replicas))
        while state.movable[number] and len(replicas) > factor:
            state.remove(number, _replica_to_remove(state, number))
    return added


def _replica_to_remove(state: PlacementState, number: int) -> int:
    """Return the broker whose replica of a partition is removed.

    An offline one or one in a crowded rack is chosen first, the leader last.
    """
    replicas = state.replicas[number]
    groups = [state.group_of[broker] for broker in replicas]
    return max(
        replicas,
        key=lambda b: (
            (number, b) in state.barred,
            groups.count(state.group_of[b]) if state.has_racks else 0,
            (number, b) in state.lagging,
            b != replicas[0],
            state.counts[b],
            state.held_bytes[b],
            b,
        ),
    )
