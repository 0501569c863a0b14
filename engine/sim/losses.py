"""Who lost writes with the power, and where records may be lost for it.

A partition is excused once every member of its in-sync set has lost what was not synced, or its
leader has and no controller could see that: it was back before one looked which brokers there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.sim.histories import History
from engine.sim.node import SimulatedBroker
from engine.sim.topics import Topics
from engine.znode.values import PartitionStateNode

#: What no controller's epoch is.
_NO_CONTROLLER = -1


class Rules(NamedTuple):
    """What a plan promises."""

    min_isr: int
    is_unclean_allowed: bool
    is_synced: bool
    #: For how long tombstones of compacted topics are to stay; None where no topic is compacted.
    tombstones_stay_ms: int | None = None
    #: `retention.ms` and `retention.bytes` of topics that are not told others.
    retention: tuple[int, int] = (-1, -1)


class LossRules:
    """Tells histories of what disks have lost."""

    def __init__(
        self,
        rules: Rules,
        histories: Mapping[TopicPartition, History],
        topics: Topics,
        nodes: Mapping[int, SimulatedBroker],
    ) -> None:
        self._rules = rules
        self._histories = histories
        self._topics = topics
        self._nodes = nodes
        self._controller_epoch = 0
        self._registered: set[int] = set()

    def controller_changed(self, epoch: int) -> None:
        """Take note of a new controller."""
        self._controller_epoch = epoch
        self._judge_unseen()

    def broker_came(self, broker_id: int) -> None:
        """Take note of a registration."""
        self._registered.add(broker_id)
        self._judge_unseen()

    def broker_left(self, broker_id: int) -> None:
        """Take note of the end of a registration."""
        self._registered.discard(broker_id)

    def state_changed(
        self, key: TopicPartition, before: PartitionStateNode, state: PartitionStateNode
    ) -> None:
        """Forget what members lost before they joined again, and judge the others.

        One that lost writes after the fetch for which it joins, and has not said so yet, joins
        without them. Source: KIP-903, by which epochs of brokers count without ZooKeeper alone.
        """
        history = self._histories[key]
        for broker_id in state.isr:
            if broker_id not in before.isr and self._has_all(broker_id, key):
                history.lossy.pop(broker_id, None)
        history.judge_lossy()
        history.judge_unseen(self._controller_epoch)

    def _has_all(self, broker_id: int, key: TopicPartition) -> bool:
        broker = self._nodes[broker_id].broker
        replica = None if broker is None else broker.storage.replica_manager.partitions.get(key)
        end = self._histories[key].committed_end
        return replica is not None and replica.log.log_end_offset >= end

    def lost_writes(self, broker_id: int) -> None:
        """Take note of a power cut."""
        if self._rules.is_synced:
            return
        known_to = self._controller_epoch if self._is_known(broker_id) else _NO_CONTROLLER
        for key, history in self._histories.items():
            if broker_id in self._topics.replicas(key):
                history.lost_writes(broker_id, known_to)

    def _is_known(self, broker_id: int) -> bool:
        """Tell whether the controller has looked which brokers there are, and saw this one.

        Then it sees that what comes back is not what was there.
        """
        controllers = [node.broker.controller for node in self._nodes.values() if node.broker]
        return any(
            controller.context.epoch == self._controller_epoch
            and broker_id in controller.context.live_brokers
            for controller in controllers
        )

    def _judge_unseen(self) -> None:
        for history in self._histories.values():
            if history.state is not None and history.state.leader in self._registered:
                history.judge_unseen(self._controller_epoch)

    def may_lose_writes(self, broker_id: int) -> bool:
        """Tell whether a power cut leaves somebody in sync who lost nothing, everywhere."""
        if self._rules.is_synced:
            return True
        return all(
            any(member != broker_id and member not in history.lossy for member in history.state.isr)
            for history in self._histories.values()
            if history.state is not None and broker_id in history.state.isr
        )
