"""How evenly brokers share leaders, bytes and writes. Pure.

The skew of a measure is the largest share by the mean: 1.0 is even, 2.0 is a broker with twice the
mean. A measure that is nothing everywhere has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.rates import PartitionRate
from engine.exporter.cluster_sample import ClusterSample
from engine.model import TopicPartition

#: A measure whose largest share is that much above the mean is a finding.
SKEW_OF_A_FINDING: Final = 1.25
#: Smaller shares do not matter, whatever their skew: some leaders, a GiB, a MiB/s.
_LEAST_OF_A_FINDING: Final = {"leaders": 8, "bytes": 1 << 30, "rate": 1 << 20}


class BrokerShare(NamedTuple):
    """What one broker holds and takes; bytes and rate are None where it does not say them.

    The rate is of what producers write to the partitions that it leads.
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


class Imbalance(NamedTuple):
    """One measure over all brokers."""

    measure: str
    unit: str
    mean: float
    least: float
    least_broker: int
    most: float
    most_broker: int
    skew: float


def broker_shares(
    sample: ClusterSample, rates: Mapping[TopicPartition, PartitionRate]
) -> list[BrokerShare]:
    """Return the shares of all live brokers, by id."""
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
                broker_id == sample.view.controller_id,
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


def imbalances(shares: Sequence[BrokerShare]) -> list[Imbalance]:
    """Return the measures that several brokers have something of."""
    measures: list[tuple[str, str, dict[int, float]]] = [
        ("leaders", "partitions", {s.broker_id: s.leader_count for s in shares}),
        ("bytes", "bytes", {s.broker_id: s.size_bytes for s in shares if s.size_bytes is not None}),
        (
            "rate",
            "bytes/s",
            {s.broker_id: s.bytes_per_s for s in shares if s.bytes_per_s is not None},
        ),
    ]
    found = []
    for measure, unit, by_broker in measures:
        total = sum(by_broker.values())
        if len(by_broker) < 2 or not total:
            continue
        mean = total / len(by_broker)
        least = min(by_broker, key=lambda id_: (by_broker[id_], id_))
        most = max(by_broker, key=lambda id_: (by_broker[id_], -id_))
        skew = round(by_broker[most] / mean, 2)
        amounts = by_broker[least], least, by_broker[most], most
        found.append(Imbalance(measure, unit, round(mean, 1), *amounts, skew))
    return found


def is_uneven(imbalance: Imbalance) -> bool:
    """Return whether an imbalance is worth a finding."""
    is_large = imbalance.most >= _LEAST_OF_A_FINDING[imbalance.measure]
    return is_large and imbalance.skew >= SKEW_OF_A_FINDING
