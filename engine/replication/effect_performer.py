"""Perform the effects of partitions: complete delayed operations and call the broker's ports.

Effects are performed in the order of the calls; effects of nested calls follow the earlier ones.

Source: HW-14, D1, D22.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import assert_never

from engine.model import TopicPartition
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.effects import (
    Effect,
    FetchFrom,
    HighWatermarkMoved,
    LogEndMoved,
    LogStartMoved,
    ProposeIsr,
    RoleChanged,
    StopFetching,
)
from engine.replication.partition import Partition
from engine.replication.ports import ReplicaManagerPorts
from engine.replication.role_log_messages import log_isr_proposal


class EffectPerformer:
    """Performs the effects of one broker's partitions."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Partition],
        delayed: DelayedOperations,
        ports: ReplicaManagerPorts,
    ) -> None:
        """Create the performer of partitions' effects.

        `ports` perform effects outside of partitions, such as fetching and ISR proposals.
        """
        self._partitions = partitions
        self._delayed = delayed
        self._ports = ports
        #: Effects that are not performed yet, in order.
        self._effects: deque[Effect] = deque()
        #: Whether a caller further up the stack is performing effects; it also performs new ones.
        self._is_performing = False

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform effects in order: complete delayed operations and call the ports.

        A callback of a promise may call `perform` again: the effects of that nested call are queued
        and performed after the present ones, so that the order stays that of the decisions.

        Source: HW-14, D22.
        """
        waiting = self._effects
        waiting.extend(effects)
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while waiting:
                self._perform_one(waiting.popleft())
        finally:
            self._is_performing = False

    def _perform_one(self, effect: Effect) -> None:
        """Complete the delayed operations that waited for an effect, or call the port for it."""
        delayed, ports = self._delayed, self._ports
        match effect:
            case LogEndMoved():
                delayed.check_fetches(effect.topic_partition)
            case HighWatermarkMoved():
                # Each kind of delayed operation on the partition may be complete.
                delayed.check_all(effect.topic_partition)
            case RoleChanged():
                delayed.check_all(effect.topic_partition)
                ports.moving.resume(effect.topic_partition)
            case LogStartMoved():
                # The log manager's task writes the checkpoint; a DeleteRecords before may be
                # complete.
                delayed.check_deletes(effect.topic_partition)
                delayed.check_fetches(effect.topic_partition)
            case ProposeIsr():
                partition = self._partitions.get(effect.topic_partition)
                if partition is not None:
                    log_isr_proposal(partition, effect.isr)
                ports.propose_isr(effect)
            case FetchFrom():
                ports.fetching.fetch_from(effect)
            case StopFetching():
                ports.fetching.stop(effect.topic_partition)
            case _:
                assert_never(effect)
