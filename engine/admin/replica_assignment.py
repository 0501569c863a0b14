"""Assign replicas to new partitions as Kafka's admin does; the algorithm is
`engine.planner.kafka_assignment`.

Source: C9; org.apache.kafka.admin.AdminUtils of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.admin.topic_errors import TopicRefused
from engine.host.ports import Entropy
from engine.kafka_errors import INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, UNKNOWN_SERVER_ERROR
from engine.planner.kafka_assignment import MixedRacks, place_round_robin
from engine.replication.metadata_cache import BrokerNode


class Placement(NamedTuple):
    """The parameters of an assignment: first broker, shift and first partition."""

    #: Index of the broker that leads partition 0, and the distance of the followers.
    start_index: int
    shift: int
    #: The first new partition; those before it exist already.
    first_partition: int = 0

    @classmethod
    def random(cls, entropy: Entropy, broker_count: int) -> Placement:
        """Return a random first broker and shift, so that topics are spread over the brokers."""
        return cls(entropy.random_below(broker_count), entropy.random_below(broker_count))


def check_counts(partition_count: int, replication_factor: int, broker_count: int) -> None:
    """Raise TopicRefused if a count is not positive, or there are more replicas than brokers."""
    if partition_count <= 0:
        raise TopicRefused(INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise TopicRefused(INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > broker_count:
        raise TopicRefused(
            INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{broker_count}.",
        )


def assign_replicas(
    brokers: Sequence[BrokerNode],
    partition_count: int,
    replication_factor: int,
    placement: Placement,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of each new partition by index, preferred leaders first.

    The counts must be valid. Raises TopicRefused if only some brokers have a rack.
    """
    racks = {broker.broker_id: broker.rack for broker in brokers if broker.rack is not None}
    first = placement.first_partition
    try:
        return place_round_robin(
            [broker.broker_id for broker in brokers],
            racks,
            range(first, first + partition_count),
            replication_factor,
            start_index=placement.start_index,
            shift=placement.shift,
        )
    except MixedRacks as error:
        raise TopicRefused(
            UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        ) from error


def sorted_brokers(brokers: Iterable[BrokerNode]) -> list[BrokerNode]:
    """Return brokers in the order of their ids, on which assignments are based."""
    return sorted(brokers, key=lambda broker: broker.broker_id)
