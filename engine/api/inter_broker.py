"""The checks that all requests of the controller have in common: broker epoch, controller epoch.

A broker that restarted has a new broker epoch: requests for an earlier epoch are refused. So are
requests of a controller that another controller has replaced (PART-4).
Source: REPL-8, C2; KafkaApis.isBrokerEpochStale; KIP-380.
"""

from __future__ import annotations

from typing import Protocol

from engine.kafka_errors import STALE_BROKER_EPOCH
from engine.replication.leadership import Leadership, StaleControllerEpoch

_ANY_EPOCH = -1


class ControllerRequest(Protocol):
    """The fields that all requests of the controller have."""

    controller_epoch: int
    broker_epoch: int


def check_controller(request: ControllerRequest, leadership: Leadership, broker_epoch: int) -> int:
    """Check a request's epochs; return the code that refuses it, 0 if its controller is current.

    A higher controller epoch than before is stored.
    """
    if request.broker_epoch != _ANY_EPOCH and request.broker_epoch < broker_epoch:
        return STALE_BROKER_EPOCH
    try:
        leadership.admit(request.controller_epoch)
    except StaleControllerEpoch as error:
        return error.code
    return 0
