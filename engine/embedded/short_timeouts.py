"""Broker settings for tests, with short timeouts."""

from __future__ import annotations

from typing import Final

_REPLICAS_MAX: Final = 3
_MIN_ISR: Final = 2
#: Groups start with their first member; internal topics are small; the loss of a broker is noticed
#: within seconds. 4 s is the shortest session that the metadata store allows.
_QUICK: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "3000",
}


def short_timeout_settings(broker_count: int) -> dict[str, str]:
    """Return the settings of brokers with short time-outs, for tests.

    Topics get as many replicas as there are brokers, at most 3; with 3 brokers or more
    min.insync.replicas is 2.
    """
    if broker_count < _REPLICAS_MAX:
        return {**_QUICK, "default.replication.factor": str(broker_count)}
    return {
        **_QUICK,
        "default.replication.factor": str(_REPLICAS_MAX),
        "min.insync.replicas": str(_MIN_ISR),
    }
