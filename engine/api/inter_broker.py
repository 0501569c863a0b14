"""What requests of the controller have in common: they are for one life of a broker.

A broker that was away and is back has a new epoch; orders for its former life are refused.
Source: KafkaApis.isBrokerEpochStale; KIP-380.
"""

from __future__ import annotations

STALE_BROKER_EPOCH = 77
_ANY_EPOCH = -1


def is_stale(requested_epoch: int, broker_epoch: int) -> bool:
    """Tell whether a request is for a former life; one without an epoch never is."""
    return requested_epoch != _ANY_EPOCH and requested_epoch < broker_epoch
