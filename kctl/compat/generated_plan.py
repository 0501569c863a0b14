"""The proposal of --generate: new replicas for topics, each from a random start.

Source: ReassignPartitionsCommand.calculateAssignment, AdminUtils.assignReplicasToBrokers of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.host.ports import Entropy
from engine.model import TopicPartition
from engine.planner.kafka_assignment import place_round_robin
from kctl.compat.java_failures import ADMIN_OPERATION, ToolFailure
from kctl.compat.releases import Release

_TOO_FEW = "org.apache.kafka.common.errors.InvalidReplicationFactorException"
_MIXED_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make "
    "replica assignment without rack information."
)


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None


def usable_brokers(brokers: Sequence[UsableBroker], *, is_rack_aware: bool) -> list[UsableBroker]:
    """Return the brokers to place replicas on, by id; without racks unless `is_rack_aware`.

    Errors: ToolFailure if only some brokers have a rack.
    """
    ordered = sorted(brokers)
    if not is_rack_aware:
        return [UsableBroker(broker.broker_id, None) for broker in ordered]
    rackless = [broker for broker in ordered if broker.rack is None]
    if rackless and len(rackless) < len(ordered):
        raise ToolFailure(ADMIN_OPERATION, _MIXED_RACKS)
    return ordered


def generate_plan(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Sequence[UsableBroker],
    entropy: Entropy,
    release: Release = Release.V3_9,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return new replicas for all partitions of the topics, placed as by Kafka's --generate.

    Each partition gets as many replicas as its topic's first partition has. `entropy` chooses the
    first brokers. Errors: ToolFailure if there are fewer brokers.
    """
    broker_ids = [broker.broker_id for broker in brokers]
    racks = {broker.broker_id: broker.rack for broker in brokers if broker.rack is not None}
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted({key.topic for key in current}):
        keys = sorted(key for key in current if key.topic == topic)
        factor = len(current[keys[0]])
        if factor > len(broker_ids):
            raise ToolFailure(_TOO_FEW, _too_few_brokers_text(factor, len(broker_ids), release))
        placed = place_round_robin(
            broker_ids,
            racks,
            range(len(keys)),
            factor,
            start_index=entropy.random_below(len(broker_ids)),
            shift=entropy.random_below(len(broker_ids)),
        )
        proposed |= {TopicPartition(topic, number): ids for number, ids in placed.items()}
    return proposed


def _too_few_brokers_text(factor: int, broker_count: int, release: Release) -> str:
    """Return the release's message for a replication factor above the number of brokers."""
    if not release.is_four:
        return f"Replication factor: {factor} larger than available brokers: {broker_count}."
    if not broker_count:
        return "All brokers are currently fenced, or have all their log directories cordoned."
    return (
        f"The target replication factor of {factor} cannot be reached because only "
        f"{broker_count} broker(s) are registered or some brokers have all their log directories "
        "cordoned."
    )
