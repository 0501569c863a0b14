"""The parts that the machines of one controller share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.config.settings import BrokerSettings
from engine.controller.context import ControllerContext
from engine.controller.guarded_znodes import GuardedZnodes
from engine.controller.ports import ControllerReporter
from engine.controller.request_batch import BatchSender


class MachineParts(NamedTuple):
    """The state, its writer and its sender."""

    context: ControllerContext
    znodes: GuardedZnodes
    sender: BatchSender
    reporter: ControllerReporter
    #: The broker's present settings, for those that topics do not override.
    settings: Callable[[], BrokerSettings]
