"""Each broker's share of replicas, leaders and writes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from engine.client.rates import PartitionRate
from engine.exporter.cluster_sample import ClusterSample
from engine.model import TopicPartition


class BrokerShare(NamedTuple):
    """The share of one broker; bytes and rates are None if its broker did not return them.

    The rates are those of producers' writes to the partitions that it leads.
    """

    broker_id: int
    host: str
    rack: str | None
    is_controller: bool
    leader_count: int
    replica_count: int
    out_of_sync_count: int
    size_bytes: int | None
    usable_bytes: int | None
    bytes_per_s: int | None
    records_per_s: float | None


def broker_shares(
    sample: ClusterSample, rates: Mapping[TopicPartition, PartitionRate]
) -> list[BrokerShare]:
    """Return the leaders, replicas, bytes and write rates of each live broker, by broker id."""
    leaders, replicas, lacking = Counter[int](), Counter[int](), Counter[int]()
    written, records = Counter[int](), Counter[int]()
    for name, topic in sample.view.topics.items():
        for row in topic.partitions:
            leaders[row.leader] += 1
            replicas.update(row.replicas)
            lacking.update(set(row.replicas) - set(row.isr))
            rate = rates.get(TopicPartition(name, row.partition))
            if rate is not None:
                written[row.leader] += rate.bytes_per_s
                records[row.leader] += round(rate.records_per_s * 10)
    shares = []
    for broker_id, broker in sorted(sample.view.brokers.items()):
        dirs = sample.log_dirs.get(broker_id)
        usable = [d.usable_bytes for d in dirs or () if d.usable_bytes is not None]
        has_rate = bool(rates) and broker_id not in sample.silent
        shares.append(
            BrokerShare(
                broker_id,
                broker.address.host,
                broker.rack,
                broker_id == sample.view.known_controller_id,
                leaders[broker_id],
                replicas[broker_id],
                lacking[broker_id],
                None if dirs is None else sum(r.size_bytes for d in dirs for r in d.replicas),
                sum(usable) if usable else None,
                written[broker_id] if has_rate else None,
                records[broker_id] / 10 if has_rate else None,
            )
        )
    return shares
