"""Periodic election of preferred leaders (auto leader rebalance).

The imbalance of a broker is the share of the partitions with it as preferred leader that have
another leader. If it exceeds `leader.imbalance.per.broker.percentage`, the broker is elected in
each of these partitions in which it is alive and in sync.

| check | when |
|---|---|
| first | 5 s after the election of the controller |
| next | `leader.imbalance.check.interval.seconds` after each check |
| none | without `auto.leader.rebalance.enable`; while any partition is reassigned; for topics to delete |

The three settings are read when a broker starts, as in Kafka.

Source: CTL-12, ELE-3, SCH-13; KafkaController.checkAndTriggerAutoLeaderRebalance.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from engine.config.broker_config import BrokerConfig
from engine.controller.context import ControllerContext
from engine.controller.elections import ElectionReason
from engine.controller.machines import Machines
from engine.controller.states import PartitionPhase
from engine.host.ports import Clock, Timers
from engine.limits import LEADER_BALANCE_FIRST_CHECK_MS
from engine.model import TopicPartition

#: Stands for the leader of a partition that never had one.
_NEVER_LED = -2


class PreferredLeadership(NamedTuple):
    """A partition's preferred leader, its leader and its ISR."""

    preferred: int
    leader: int
    isr: tuple[int, ...]


def find_imbalanced_partitions(
    leaderships: Mapping[TopicPartition, PreferredLeadership],
    can_lead: Callable[[int, TopicPartition], bool],
    percentage: int,
) -> list[TopicPartition]:
    """Return the partitions whose preferred leader is to be elected.

    They are led by other brokers, and their preferred leader leads too few of its partitions: more
    than `percentage` are elsewhere. A partition that never had a leader has the leader −2 and does
    not count as imbalanced. `can_lead` returns True if a replica is alive.
    """
    by_broker: dict[int, list[TopicPartition]] = {}
    for partition, leadership in leaderships.items():
        by_broker.setdefault(leadership.preferred, []).append(partition)
    chosen = []
    for broker_id, partitions in by_broker.items():
        elsewhere = [p for p in partitions if leaderships[p].leader not in (broker_id, _NEVER_LED)]
        if len(elsewhere) * 100 > percentage * len(partitions):
            chosen += [
                partition
                for partition in elsewhere
                if broker_id in leaderships[partition].isr and can_lead(broker_id, partition)
            ]
    return chosen


class LeaderBalance:
    """Checks periodically whether preferred leaders have to be elected."""

    def __init__(
        self, machines: Machines, config: BrokerConfig, clock: Clock, timers: Timers
    ) -> None:
        """Create the periodic check of the leader balance; it does not run before `start`."""
        self._machines = machines
        self._config = config
        self._clock = clock
        self._timers = timers
        #: Cancels the timer of the next check; None while this broker is not the active controller.
        self._cancel: Callable[[], None] | None = None

    def start(self) -> None:
        """Schedule the first check of the balance, after this broker has become the controller.

        Does nothing without auto.leader.rebalance.enable.
        """
        if self._config.auto_leader_rebalance_enable:
            self._schedule(LEADER_BALANCE_FIRST_CHECK_MS)

    def stop(self) -> None:
        """Cancel the next check of the balance: this broker resigns as controller."""
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    async def run_check(self) -> None:
        """Elect preferred leaders for brokers that lead too few partitions, and schedule a check.

        Nothing is elected while partitions are being reassigned.
        """
        context = self._machines.context
        try:
            chosen: Iterable[TopicPartition] = ()
            if not context.reassigning:
                chosen = find_imbalanced_partitions(
                    _collect_leaderships(context),
                    context.is_online,
                    self._config.leader_imbalance_per_broker_percentage,
                )
            await self._machines.partitions.change_phase(
                chosen, PartitionPhase.ONLINE, ElectionReason.PREFERRED
            )
        finally:
            self._schedule(self._config.leader_imbalance_check_interval_seconds * 1000)

    def _schedule(self, delay_ms: int) -> None:
        """Schedule the next check after `delay_ms`; an earlier scheduled check is cancelled."""
        self.stop()
        due_ms = self._clock.monotonic_ms() + delay_ms
        self._cancel = self._timers.call_at(due_ms, self._put_check)

    def _put_check(self) -> None:
        """Queue the check of the balance as an event of the controller."""
        self._machines.put("AutoPreferredReplicaLeaderElection", self.run_check)


def _collect_leaderships(context: ControllerContext) -> dict[TopicPartition, PreferredLeadership]:
    """Return preferred leader, leader and ISR of each partition that is not being deleted."""
    leaderships = {}
    for partition in context.partitions():
        replicas = context.assignment(partition).replicas
        if not replicas or partition.topic in context.to_delete:
            continue
        current = context.leaderships.get(partition)
        leaderships[partition] = (
            PreferredLeadership(replicas[0], _NEVER_LED, ())
            if current is None
            else PreferredLeadership(replicas[0], current.state.leader, current.state.isr)
        )
    return leaderships
