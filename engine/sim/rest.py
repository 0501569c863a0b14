"""Whether a cluster is at rest: everybody up, every replica in sync and equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model import TopicPartition
from engine.sim.invariants import Invariants
from engine.sim.node import SimulatedBroker


def unrest(
    nodes: Mapping[int, SimulatedBroker],
    invariants: Invariants,
    partitions: Iterable[TopicPartition],
) -> list[str]:
    """Return what keeps a cluster from rest, in words; empty at rest."""
    causes = [f"{node.name} is down" for node in nodes.values() if not node.is_up]
    active = [n.name for n in nodes.values() if n.broker and n.broker.controller.is_active]
    if len(active) != 1:
        causes.append(f"controllers: {active}")
    for key in partitions:
        causes += _partition_unrest(key, nodes, invariants)
    return causes


def _partition_unrest(
    key: TopicPartition, nodes: Mapping[int, SimulatedBroker], invariants: Invariants
) -> list[str]:
    history = invariants.histories.get(key)
    if history is None or history.state is None:
        return [f"{key} is not there"]
    state, assigned = history.state, invariants.assigned[key]
    if state.leader < 0 or set(state.isr) != set(assigned):
        return [f"{key} has leader {state.leader}, ISR {list(state.isr)} of {list(assigned)}"]
    ends = set()
    for broker_id in assigned:
        broker = nodes[broker_id].broker
        if broker is None:
            return [f"{key} has a replica on a broker that is down"]
        partition = broker.storage.replica_manager.partitions.get(key)
        if partition is None or partition.leader_epoch != state.leader_epoch:
            return [f"{key}: {broker_id} does not follow epoch {state.leader_epoch}"]
        ends.add((partition.log.log_end_offset, partition.high_watermark))
    if len(ends) > 1 or any(end != watermark for end, watermark in ends):
        return [f"{key}: ends and watermarks {sorted(ends)}"]
    return []
