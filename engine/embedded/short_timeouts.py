"""Settings of a cluster for tests: nothing waits longer than a test can."""

from __future__ import annotations

from typing import Final

_REPLICAS_MAX: Final = 3
_MIN_ISR: Final = 2
#: A group begins with its first member, as nobody waits for others; internal topics are small;
#: a broker that is gone or cut off is missed after seconds. 4 s is the shortest session that the
#: metadata store gives.
_QUICK: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "3000",
}


def short_timeout_settings(broker_count: int) -> dict[str, str]:
    """Return the settings of brokers; topics have up to 3 replicas, 2 of which must be in sync."""
    if broker_count < _REPLICAS_MAX:
        return {**_QUICK, "default.replication.factor": str(broker_count)}
    return {
        **_QUICK,
        "default.replication.factor": str(_REPLICAS_MAX),
        "min.insync.replicas": str(_MIN_ISR),
    }
