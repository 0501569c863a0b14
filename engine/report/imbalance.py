"""The distribution of leaders, bytes and writes over brokers. Pure.

The skew of a measure is the largest share divided by the mean: 1.0 is even, 2.0 means that a broker
has twice the mean. A measure that is 0 on all brokers has no skew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.watching.broker_shares import BrokerShare

#: Minimum skew of a finding.
SKEW_OF_A_FINDING: Final = 1.25
#: Minimum largest share of a finding: some leaders, a GiB, a MiB/s.
_LEAST_OF_A_FINDING: Final = {"leaders": 8, "bytes": 1 << 30, "rate": 1 << 20}


class Imbalance(NamedTuple):
    """The distribution of one measure over all brokers."""

    measure: str
    unit: str
    mean: float
    least: float
    least_broker: int
    most: float
    most_broker: int
    skew: float


def imbalances(shares: Sequence[BrokerShare]) -> list[Imbalance]:
    """Return how leaders, bytes and write rate are distributed over the brokers.

    Left out is a measure that fewer than two brokers have or that is 0 everywhere.
    """
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
    """Return True if the broker with the most has so much, and so skewed, that it is a finding."""
    is_large = imbalance.most >= _LEAST_OF_A_FINDING[imbalance.measure]
    return is_large and imbalance.skew >= SKEW_OF_A_FINDING
