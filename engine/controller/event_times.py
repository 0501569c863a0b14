"""Queue times, rates and durations of the controller's events.

Kafka measures them by the controller's state during the event; events that are not listed here have
no timer.

Source: ControllerState.rateAndTimeMetricName, ControllerEventManager and ControllerStats of 3.9.1.
Differs: updates of metadata and of features are not events here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.host.ports import Clock
from engine.timing.histogram import Histogram

_NS_PER_US: Final = 1_000
_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1_000
_CONTROLLER_CHANGE: Final = "ControllerChange"
_BROKER_CHANGE: Final = "LeaderElection"
_REASSIGNMENT: Final = "PartitionReassignment"
_TOPIC_CHANGE: Final = "TopicChange"

#: Timer name of each event, without the suffix `RateAndTimeMs`.
_TIMERS: Final = {
    "AlterPartition": "IsrChange",
    "ApiPartitionReassignment": _REASSIGNMENT,
    "AutoPreferredReplicaLeaderElection": "AutoLeaderBalance",
    "BrokerChange": _BROKER_CHANGE,
    "BrokerModifications": _BROKER_CHANGE,
    "ControlledShutdown": "ControlledShutdown",
    "ControllerChange": _CONTROLLER_CHANGE,
    "Expire": _CONTROLLER_CHANGE,
    "IsrChangeNotification": "IsrChange",
    "LeaderAndIsrResponseReceived": "LeaderAndIsrResponseReceived",
    "ListPartitionReassignments": "ListPartitionReassignment",
    "LogDirEventNotification": "LogDirChange",
    "PartitionModifications": _TOPIC_CHANGE,
    "PartitionReassignmentIsrChange": _REASSIGNMENT,
    "Reelect": _CONTROLLER_CHANGE,
    "ReplicaLeaderElection": "ManualLeaderBalance",
    "Startup": _CONTROLLER_CHANGE,
    "TopicChange": _TOPIC_CHANGE,
    "TopicDeletion": "TopicDeletion",
    "TopicDeletionStopReplicaResponseReceived": "TopicDeletion",
    "TopicUncleanLeaderElectionEnable": "TopicUncleanLeaderElectionEnable",
    "UncleanLeaderElectionEnable": "UncleanLeaderElectionEnable",
    "ZkPartitionReassignment": _REASSIGNMENT,
}


class EventTimes:
    """The timers of one controller's events, and the times of events in the queue."""

    def __init__(self, clock: Clock, work_ns: Callable[[], int]) -> None:
        """Create the histograms of controller events.

        `work_ns` returns a monotonic time in nanoseconds.
        """
        self._clock = clock
        self.now_ns = work_ns
        now_s = clock.monotonic_ms() // _MS_PER_S
        #: Times of events in the queue, in ms.
        self.waits = Histogram(now_s)
        #: Durations of events in microseconds, by the name in
        #: `kafka.controller:type=ControllerStats`.
        self.timers = {
            f"{name}RateAndTimeMs": Histogram(now_s) for name in sorted({*_TIMERS.values()})
        }

    def record_event(self, event: str, queued_ns: int, began_ns: int) -> None:
        """Record how long an event was queued and how long it ran, for metrics; it ended now.

        The name may have its subject in brackets. Times are monotonic ns.
        """
        now_s = self._clock.monotonic_ms() // _MS_PER_S
        self.waits.note((began_ns - queued_ns) // _NS_PER_MS, now_s)
        kind, _, _ = event.partition("(")
        name = _TIMERS.get(kind)
        if name is not None:
            took_us = (self.now_ns() - began_ns) // _NS_PER_US
            self.timers[f"{name}RateAndTimeMs"].note(took_us, now_s)
