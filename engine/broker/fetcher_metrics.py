"""Gauges of a broker's fetchers, fetch sessions and purgatories, by Kafka's names.

| domain and type | gauges |
|---|---|
| `kafka.server` ReplicaFetcherManager, FetcherLagMetrics | lag of followed partitions, in offsets |
| `kafka.server` FetchSessionCache | number of sessions, and of their partitions |
| `kafka.server` DelayedOperationPurgatory | delayed operations, and their watched keys |

Source: AbstractFetcherManager, FetcherLagStats, FetchSessionCache and DelayedOperationPurgatory of
3.9.1. Differs: fetchers are not threads, so there is no gauge of dead threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final

from engine.broker.metric_text import BrokerMetric
from engine.model import TopicPartition
from engine.replication.following.fetch_state import FetchState
from engine.timing.purgatory import PurgatoryCount

_PURGATORY: Final = "kafka.server:type=DelayedOperationPurgatory,name="
_SESSIONS: Final = "kafka.server:type=FetchSessionCache,name="


def fetcher_metrics(
    followed: Mapping[tuple[int, int], Mapping[TopicPartition, FetchState]],
) -> Iterator[BrokerMetric]:
    """Yield the lag of each partition that this broker follows, and the maximal lag.

    `followed` has fetch states by leader id and number of the fetcher.
    """
    max_lag = 0
    for (leader_id, number), states in sorted(followed.items()):
        client = f"clientId=ReplicaFetcherThread-{number}-{leader_id}"
        for (topic, partition), state in sorted(states.items(), key=itemgetter(0)):
            if state.lag is None:
                continue
            max_lag = max(max_lag, state.lag)
            place = f"{client},topic={topic},partition={partition}"
            name = f"kafka.server:type=FetcherLagMetrics,name=ConsumerLag,{place}"
            yield BrokerMetric(name, state.lag)
    manager = "kafka.server:type=ReplicaFetcherManager,name=MaxLag,clientId=Replica"
    yield BrokerMetric(manager, max_lag)


def purgatory_metrics(counts: Mapping[str, PurgatoryCount]) -> Iterator[BrokerMetric]:
    """Yield the gauges of purgatories; `counts` is by Kafka's name of the purgatory."""
    for operation, count in sorted(counts.items()):
        place = f"delayedOperation={operation}"
        yield BrokerMetric(f"{_PURGATORY}NumDelayedOperations,{place}", count.delayed_count)
        yield BrokerMetric(f"{_PURGATORY}PurgatorySize,{place}", count.watched_count)


def session_metrics(session_count: int, partition_count: int) -> Iterator[BrokerMetric]:
    """Yield the gauges of fetch sessions: their number, and that of their partitions."""
    yield BrokerMetric(f"{_SESSIONS}NumIncrementalFetchSessions", session_count)
    yield BrokerMetric(f"{_SESSIONS}NumIncrementalFetchPartitionsCached", partition_count)
