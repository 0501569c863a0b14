"""Topics whose records are unavailable or at risk. Pure.

| risk | partitions |
|---|---|
| offline | without a leader |
| under-min-isr | fewer in sync than min.insync.replicas: acks=all is refused |
| at-min-isr | as many in sync as min.insync.replicas, and fewer than there are replicas |
| under-replicated | fewer in sync than there are replicas, not counting those that a move adds |
| one-replica | one replica: the loss of a disk loses the records |
| racks | the replicas are in fewer racks than possible |

Of the first four a partition has only the first that applies; it may have the others as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.client.metadata import ClusterView, PartitionView
from engine.exporter.cluster_sample import ClusterSample
from engine.model import TopicPartition
from engine.watching.partition_trouble import TROUBLES, partition_trouble

RISKS: Final = (*TROUBLES, "one-replica", "racks")


class TopicRisk(NamedTuple):
    """A risk of a topic: the number of partitions that have it, and the first of them."""

    topic: str
    risk: str
    partition_count: int
    of_partitions: int
    first_partition: int


def topic_risks(sample: ClusterSample) -> list[TopicRisk]:
    """Return the risks of all topics, one row for each risk and topic, the worst risk first.

    A row counts the affected partitions and names the first.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for name, topic in sorted(sample.view.topics.items()):
        for row in topic.partitions:
            for risk in _partition_risks(name, row, sample):
                found.setdefault((RISKS.index(risk), name), []).append(row.partition)
    return [
        TopicRisk(
            name,
            RISKS[number],
            len(partitions),
            len(sample.view.topics[name].partitions),
            partitions[0],
        )
        for (number, name), partitions in sorted(found.items())
    ]


def _partition_risks(name: str, row: PartitionView, sample: ClusterSample) -> Iterator[str]:
    """Yield the names of a partition's risks, as they are in `RISKS`."""
    move = (sample.moves or {}).get(TopicPartition(name, row.partition))
    adding = () if move is None else move.adding
    trouble = partition_trouble(row, sample.min_isr.get(name), adding)
    if trouble is not None:
        yield trouble
    if len(row.replicas) == 1:
        yield "one-replica"
    elif move is None and _is_badly_placed(row, sample.view):
        yield "racks"


def _is_badly_placed(row: PartitionView, view: ClusterView) -> bool:
    """Return True if replicas of a partition share a rack although another rack has none.

    False if there are fewer than two racks, or a replica's broker or its rack is unknown.
    """
    racks = {broker.rack for broker in view.brokers.values() if broker.rack is not None}
    placed = [view.brokers[id_].rack for id_ in row.replicas if id_ in view.brokers]
    if len(racks) < 2 or None in placed or len(placed) < len(row.replicas):
        return False
    return len(set(placed)) < min(len(racks), len(row.replicas))
