"""Kafka's placement of replicas of new partitions, and the proposals of its tool's `--generate`.

Leaders are assigned round-robin from a start index; the first follower comes `shift` + 1 places
after its leader, and the shift grows by one with each round:

```
brokers 0 1 2 3 4, three replicas, start 0, shift 0
p0  0 1 2      p5  0 2 3
p1  1 2 3      p6  1 3 4
p2  2 3 4      p7  2 4 0
p3  3 4 0      p8  3 0 1
p4  4 0 1      p9  4 1 2
```

With racks the brokers are first sorted so that racks alternate. A broker is skipped for a follower
if its rack has a replica while another rack has none, or if it has a replica itself.

Source: C9; org.apache.kafka.admin.AdminUtils and ReassignPartitionsCommand of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.cluster_model import BrokerModel, ClusterModel


class MixedRacks(EngineError):
    """Some brokers have a rack and other ones have none (`without_rack`)."""

    hint = "give every broker a rack, or place replicas without regard to racks"

    def __init__(self, without_rack: Sequence[int]) -> None:
        self.without_rack = tuple(without_rack)
        listed = ", ".join(map(str, self.without_rack))
        super().__init__(f"not all brokers have a rack: {listed} have none")


class TooFewBrokers(EngineError):
    """A topic has more replicas than there are brokers to place them on."""

    def __init__(self, subject: str, replication_factor: int, broker_count: int) -> None:
        """Create the error; `subject` begins its message, such as "topic t"."""
        self.subject = subject
        self.replication_factor = replication_factor
        self.broker_count = broker_count
        super().__init__(
            f"{subject} needs {replication_factor} brokers for its replicas, {broker_count} may "
            "hold them"
        )


def place_round_robin(
    broker_ids: Sequence[int],
    racks: Mapping[int, str],
    partitions: range,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of new partitions by index, leaders first.

    `racks` is empty, or has every broker: otherwise raises MixedRacks. There must be as many
    brokers as replicas. `start_index` is the place of the broker that leads partition 0.
    """
    if racks and len(racks) < len(broker_ids):
        raise MixedRacks([broker_id for broker_id in broker_ids if broker_id not in racks])
    order = alternate_racks(racks) if racks else list(broker_ids)
    assignment = {}
    for partition in partitions:
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        first = (partition + start_index) % len(order)
        if racks:
            assignment[partition] = _replicas_across_racks(
                order, racks, first, shift, replication_factor
            )
        else:
            followers = (
                order[_follower_index(first, shift, step, len(order))]
                for step in range(replication_factor - 1)
            )
            assignment[partition] = (order[first], *followers)
    return assignment


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers in an order in which the racks alternate, as far as possible."""
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


def _replicas_across_racks(
    order: Sequence[int], racks: Mapping[int, str], first: int, shift: int, count: int
) -> tuple[int, ...]:
    """Return one partition's replicas, each in a new rack until all racks have one.

    `first` is the leader's place in the order.

    Source: AdminUtils.assignReplicasToBrokersRackAware.
    """
    rack_count = len(set(racks.values()))
    replicas = [order[first]]
    used_racks = {racks[order[first]]}
    step = 0
    while len(replicas) < count:
        broker_id = order[_follower_index(first, shift * rack_count, step, len(order))]
        step += 1
        rack = racks[broker_id]
        may_use_rack = rack not in used_racks or len(used_racks) == rack_count
        if may_use_rack and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(rack)
    return tuple(replicas)


def _follower_index(first: int, shift: int, step: int, broker_count: int) -> int:
    """Return the place of a partition's follower number `step` in the order of brokers.

    Source: AdminUtils.replicaIndex.
    """
    return (first + 1 + (shift + step) % (broker_count - 1)) % broker_count


def generate_assignment(
    model: ClusterModel,
    broker_ids: Sequence[int],
    topics: Sequence[str],
    random: Random,
    *,
    rack_aware: bool = True,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the assignment that Kafka's `--generate` proposes: all replicas placed from scratch.

    A topic gets as many replicas as its first partition in the model has. Each topic begins at a
    random broker. Raises MixedRacks and TooFewBrokers.

    Differs: the tool numbers the partitions of a topic 0, 1, ...; here they keep their numbers.
    """
    chosen = {b.broker_id: b for b in model.brokers if b.broker_id in set(broker_ids)}
    order = sorted(chosen)
    racks = _racks_of(chosen) if rack_aware else {}
    wanted = set(topics)
    by_topic: dict[str, dict[int, int]] = {}
    for partition in model.partitions:
        if partition.topic in wanted:
            of_topic = by_topic.setdefault(partition.topic, {})
            of_topic[partition.partition] = len(partition.replicas)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in sorted(by_topic):
        numbers = sorted(by_topic[topic])
        replica_count = by_topic[topic][numbers[0]]
        if replica_count > len(order):
            raise TooFewBrokers(f"topic {topic}", replica_count, len(order))
        placed = place_round_robin(
            order,
            racks,
            range(len(numbers)),
            replica_count,
            start_index=random.randrange(len(order)),
            shift=random.randrange(len(order)),
        )
        for number, replicas in zip(numbers, placed.values(), strict=True):
            proposed[TopicPartition(topic, number)] = replicas
    return proposed


def _racks_of(brokers: Mapping[int, BrokerModel]) -> dict[int, str]:
    """Return the racks of brokers by id, empty if no broker has one.

    Raises MixedRacks if only some have.
    """
    racks = {broker_id: b.rack for broker_id, b in brokers.items() if b.rack is not None}
    if racks and len(racks) < len(brokers):
        raise MixedRacks(sorted(set(brokers) - set(racks)))
    return racks
