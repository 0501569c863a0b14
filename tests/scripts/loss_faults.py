"""Faults that scripts and simulations plant: rules without which known stories lose records."""

from __future__ import annotations

from typing import Any

import pytest

from engine.controller import broker_events, replica_machine
from engine.controller.broker_events import BrokerEvents
from engine.log import local_log
from engine.log.producer_state import ProducerState
from engine.log.recovery import loader
from engine.log.recovery.swap_recovery import SwapPlan, plan_swaps
from engine.replication.following.fetch_state import LocalLogEnds
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.partition import Partition
from engine.replication.partition_types import EnoughReplicas, PartitionState


def the_last_replica_leaves(patch: pytest.MonkeyPatch) -> None:
    """Leave nobody in the in-sync set when its last member dies, and take anyone then."""

    def without_replica(state: Any, replica: int, controller_epoch: int) -> Any:
        isr = tuple(broker_id for broker_id in state.isr if broker_id != replica)
        leader = -1 if state.leader == replica else state.leader
        return state._replace(
            leader=leader,
            leader_epoch=state.leader_epoch + 1,
            isr=isr,
            controller_epoch=controller_epoch,
        )

    patch.setattr(replica_machine, "remove_replica", without_replica)


def bounced_brokers_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """Take a broker that came back with a new epoch for one that was never away."""
    on_brokers = BrokerEvents.on_brokers

    async def blind(self: BrokerEvents) -> None:
        live = self._context.live_brokers
        for broker_id, broker in (await broker_events.read_brokers(self._client)).items():
            if broker_id in live:
                live[broker_id] = broker
        await on_brokers(self)

    patch.setattr(BrokerEvents, "on_brokers", blind)


def repeated_sequences_are_written(patch: pytest.MonkeyPatch) -> None:
    """Write what an idempotent producer sends again."""

    def unchecked(*_arguments: Any, **_options: Any) -> None:
        return None

    patch.setattr(ProducerState, "find_duplicate", unchecked)


def followers_forget_producers(patch: pytest.MonkeyPatch) -> None:
    """Keep the state of producers on leaders alone."""
    append = local_log.LocalLog.append_as_follower

    def forgetting(self: local_log.LocalLog, *arguments: Any) -> Any:
        info = append(self, *arguments)
        self.producers.clear()
        return info

    patch.setattr(local_log.LocalLog, "append_as_follower", forgetting)


def restarts_forget_producers(patch: pytest.MonkeyPatch) -> None:
    """Begin without producers after every start."""
    patch.setattr(ProducerState, "load_entries", lambda self, entries, **_: self.clear())


def acknowledged_when_appended(patch: pytest.MonkeyPatch) -> None:
    """Answer acks=all as soon as the leader has the records."""
    enough = Partition.check_enough_replicas

    def at_once(self: Partition, required_offset: int) -> EnoughReplicas:
        return enough(self, required_offset)._replace(is_reached=True)

    patch.setattr(Partition, "check_enough_replicas", at_once)


def truncating_on_leader_change_alone(patch: pytest.MonkeyPatch) -> None:
    """Believe in the local log where the leader is the one before, the epoch not asked."""
    become_follower, begin = Partition.become_follower, FollowerLogs.begin_following
    believers: set[Partition] = set()

    def noting(self: Partition, state: PartitionState) -> Any:
        believers.discard(self)
        if state.leader_id == self.leader_id:
            believers.add(self)
        return become_follower(self, state)

    def trusting(
        self: FollowerLogs, topic_partition: Any, leader_epoch: int
    ) -> LocalLogEnds | None:
        own = begin(self, topic_partition, leader_epoch)
        partition = self._replicas.partitions.get(topic_partition)
        return own if own is None or partition not in believers else own._replace(latest_epoch=None)

    patch.setattr(Partition, "become_follower", noting)
    patch.setattr(FollowerLogs, "begin_following", trusting)


def swaps_are_thrown_away(patch: pytest.MonkeyPatch) -> None:
    """Take a replacement that was decided for one that was not."""

    def forgetting(partition: Any, end_of: Any) -> SwapPlan:
        kept = [row for row in partition.leftovers if not row.name.endswith(".swap")]
        return plan_swaps(partition._replace(leftovers=kept), end_of)

    patch.setattr(loader, "plan_swaps", forgetting)


def halves_of_a_replacement_are_finished(patch: pytest.MonkeyPatch) -> None:
    """Finish the swaps of a replacement of which some files were not even named so."""

    def hasty(partition: Any, end_of: Any) -> SwapPlan:
        kept = [row for row in partition.leftovers if not row.name.endswith(".cleaned")]
        return plan_swaps(partition._replace(leftovers=kept), end_of)

    patch.setattr(loader, "plan_swaps", hasty)
