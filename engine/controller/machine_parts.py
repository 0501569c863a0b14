"""The parts that the state machines of one controller share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.config.settings import BrokerSettings
from engine.controller.context import ControllerContext
from engine.controller.guarded_znodes import GuardedZnodes
from engine.controller.ports import ControllerReporter
from engine.controller.request_batch import BatchSender


class MachineParts(NamedTuple):
    """Context, store, request sender, reporter and settings of one controller."""

    context: ControllerContext
    znodes: GuardedZnodes
    sender: BatchSender
    reporter: ControllerReporter
    #: Returns the broker's present settings, the defaults of topic settings.
    settings: Callable[[], BrokerSettings]
