"""Findings about consumers: transactions that stay open, groups without members. Pure.

| finding | severity | when |
|---|---|---|
| hanging-transaction | critical | a transaction is open that no coordinator will end |
| long-transaction | warning | one is open, and its producer has written nothing for a while |
| idle-group | notice | a group has no members, and a lag |

The oldest open transaction of a partition blocks its read_committed consumers: they do not read
beyond its start.

Source: KIP-664, KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.findings import CRITICAL, NOTICE, WARNING, HealthFinding
from engine.client.transactions import ActiveProducer, open_in
from engine.model import TopicPartition

#: The default of the brokers' `transaction.max.timeout.ms`: no transaction may take longer.
IDLE_TRANSACTION_MS: Final = 900_000


class ReaderThresholds(NamedTuple):
    """Thresholds from which a long transaction or idle group is a finding."""

    idle_transaction_ms: int = IDLE_TRANSACTION_MS
    group_lag: int = 1


class ReaderFacts(NamedTuple):
    """The facts from which findings about readers are made.

    `hanging` are the producers, by partition and id, whose transactions no coordinator has open;
    None if that could not be requested. `lags` has the records that each group without members has
    not read, by partition.
    """

    producers: Mapping[TopicPartition, Sequence[ActiveProducer]]
    hanging: frozenset[tuple[TopicPartition, int]] | None
    lags: Mapping[str, Mapping[TopicPartition, int]]
    now_ms: int


def idle_transactions(
    producers: Iterable[ActiveProducer], now_ms: int, idle_ms: int
) -> list[ActiveProducer]:
    """Return open transactions whose producers wrote nothing for more than `idle_ms`.

    They are in the order of their start offsets.
    """
    return [one for one in open_in(producers) if now_ms - one.last_timestamp_ms > idle_ms]


def reader_findings(facts: ReaderFacts, thresholds: ReaderThresholds) -> Iterator[HealthFinding]:
    """Yield findings about delayed consumers: idle open transactions, and groups without members.

    An open transaction keeps the last stable offset, up to which read_committed consumers read.
    """
    for key in sorted(facts.producers):
        idle = idle_transactions(facts.producers[key], facts.now_ms, thresholds.idle_transaction_ms)
        for producer in idle:
            yield _transaction_finding(producer, facts)
    for group_id, lags in sorted(facts.lags.items()):
        lag = sum(lags.values())
        if lag >= max(thresholds.group_lag, 1):
            worst = max(sorted(lags), key=lags.__getitem__)
            cause = f"it has no members, and {lag} records to read, {lags[worst]} of {worst}"
            yield HealthFinding(NOTICE, "idle-group", f"group {group_id}", cause)


def _transaction_finding(producer: ActiveProducer, facts: ReaderFacts) -> HealthFinding:
    """Return a critical finding for a hanging transaction, a warning for a long one."""
    key, start = producer.partition, producer.transaction_start_offset
    idle_s = (facts.now_ms - producer.last_timestamp_ms) // 1000
    since = f"producer {producer.producer_id} has a transaction open since offset {start}, and"
    since += f" wrote nothing for {idle_s} s; readers of committed records wait there"
    if facts.hanging is not None and (key, producer.producer_id) in facts.hanging:
        word = f"{key.topic}:{key.partition}"
        cause = f"{since}; no coordinator will end it: `kctl transactions abort {word}"
        return HealthFinding(
            CRITICAL, "hanging-transaction", str(key), f"{cause} --start-offset {start}`"
        )
    return HealthFinding(WARNING, "long-transaction", str(key), since)
