"""Where the replicas of new partitions go.

Leaders go round the brokers from a random start; followers stand `shift` behind their leader, and
the shift grows by one each time the leaders have gone round:

```
brokers 0 1 2 3 4, three replicas, start 0, shift 0
p0  0 1 2      p5  0 2 3
p1  1 2 3      p6  1 3 4
p2  2 3 4      p7  2 4 0
p3  3 4 0      p8  3 0 1
p4  4 0 1      p9  4 1 2
```

With racks the brokers are first put in an order that alternates between racks, and a follower
is passed over while its rack has a replica and another rack has none, or while it has one itself.

Source: C9; org.apache.kafka.admin.AdminUtils of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.admin.topic_errors import TopicRefused
from engine.host.ports import Entropy
from engine.kafka_errors import INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, UNKNOWN_SERVER_ERROR
from engine.replication.metadata_cache import BrokerNode


class Placement(NamedTuple):
    """Where the first of the new partitions begins."""

    #: Index of the broker that leads partition 0, and the followers' distance.
    start_index: int
    shift: int
    #: The first of the new partitions; those before it are there already.
    first_partition: int = 0

    @classmethod
    def random(cls, entropy: Entropy, broker_count: int) -> Placement:
        """Return where a new topic begins, so that topics spread over the brokers."""
        return cls(entropy.random_below(broker_count), entropy.random_below(broker_count))


def check_counts(partition_count: int, replication_factor: int, broker_count: int) -> None:
    """Raise TopicRefused unless so many replicas fit on the brokers."""
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
    """Return the replicas of new partitions, leaders first; the counts were checked.

    Raises TopicRefused if some brokers have a rack and others have none.
    """
    racks = {broker.broker_id: broker.rack for broker in brokers if broker.rack is not None}
    if racks and len(racks) < len(brokers):
        raise TopicRefused(
            UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    order = rack_alternated(racks) if racks else [broker.broker_id for broker in brokers]
    assignment = {}
    shift = placement.shift
    for partition in range(placement.first_partition, placement.first_partition + partition_count):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        first = (partition + placement.start_index) % len(order)
        if racks:
            assignment[partition] = _across_racks(order, racks, first, shift, replication_factor)
        else:
            followers = (
                order[_follower(first, shift, step, len(order))]
                for step in range(replication_factor - 1)
            )
            assignment[partition] = (order[first], *followers)
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """Return brokers so that neighbours stand in different racks, as far as there are enough."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    return [
        queue[row]
        for row in range(max(map(len, queues), default=0))
        for queue in queues
        if row < len(queue)
    ]


def _across_racks(
    order: Sequence[int], racks: Mapping[int, str], first: int, shift: int, count: int
) -> tuple[int, ...]:
    rack_count = len(set(racks.values()))
    replicas = [order[first]]
    used_racks = {racks[order[first]]}
    step = 0
    while len(replicas) < count:
        broker_id = order[_follower(first, shift * rack_count, step, len(order))]
        step += 1
        rack = racks[broker_id]
        may_use_rack = rack not in used_racks or len(used_racks) == rack_count
        if may_use_rack and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(rack)
    return tuple(replicas)


def _follower(first: int, shift: int, step: int, broker_count: int) -> int:
    return (first + 1 + (shift + step) % (broker_count - 1)) % broker_count


def sorted_brokers(brokers: Iterable[BrokerNode]) -> list[BrokerNode]:
    """Return brokers by id: the order that assignments count in."""
    return sorted(brokers, key=lambda broker: broker.broker_id)
