"""The state machine of partitions: changes their phases (`states`) and elects leaders.

| to | does |
|---|---|
| NEW | sets the phase |
| ONLINE from NEW | creates `partitions`, each `<p>`, each `state`; LeaderAndIsr to the live replicas |
| ONLINE from ONLINE, OFFLINE | elects; writes `state`; LeaderAndIsr to the recipients in `Elected` |
| OFFLINE, NON_EXISTENT | sets the phase |

Requests are sent after all partitions of a call are processed. A partition whose change fails keeps
its phase and is reported.

Source: CTL-6, CTL-7, CTL-9, ZN:create-topic; Kafka's ZkPartitionStateMachine.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable

from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.controller.cluster_reader import read_many
from engine.controller.context import PartitionLeadership
from engine.controller.elections import Candidates, Elected, ElectionReason, elect, first_state
from engine.controller.machine_parts import MachineParts
from engine.controller.request_batch import RequestBatch
from engine.controller.state_writer import StateResults, StateWriter
from engine.controller.states import PARTITION_COMES_FROM, PartitionPhase
from engine.limits import CONTROLLER_MULTI_OPERATIONS_MAX
from engine.model import TopicPartition
from engine.znode.errors import NodeError, NoNode
from engine.znode.model import Create, Operation
from engine.znode.paths import (
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
)
from engine.znode.values import PartitionStateNode, decode_config, encode_partition_state


class PartitionMachine:
    """Changes the phases of partitions; only events of the controller call it."""

    def __init__(self, parts: MachineParts) -> None:
        self._parts = parts
        self._context = parts.context
        self._writer = StateWriter(parts.context, parts.znodes)

    async def set_initial_phases(self) -> None:
        """Set the phase of each partition by its stored leader after a failover.

        Missing leaders are elected.
        """
        context = self._context
        for partition in context.partitions():
            leadership = context.leaderships.get(partition)
            if leadership is None:
                phase = PartitionPhase.NEW
            elif context.is_online(leadership.state.leader, partition):
                phase = PartitionPhase.ONLINE
            else:
                phase = PartitionPhase.OFFLINE
            context.partition_phases[partition] = phase
        await self.bring_online()

    async def bring_online(self, topic: str | None = None) -> StateResults:
        """Elect leaders for the NEW and OFFLINE partitions of `topic`, of all topics for None.

        Returns for each partition with an earlier leader the written state, or why none was
        elected.
        """
        waiting = [
            partition
            for partition in self._context.partitions_waiting_for_leader()
            if topic is None or partition.topic == topic
        ]
        return await self.change_phase(waiting, PartitionPhase.ONLINE, ElectionReason.OFFLINE)

    async def change_phase(
        self,
        partitions: Iterable[TopicPartition],
        target: PartitionPhase,
        reason: ElectionReason = ElectionReason.OFFLINE,
        *,
        allow_unclean: bool = False,
    ) -> StateResults:
        """Change partitions to the phase `target`; for ONLINE elect their leaders.

        Returns the results of the elections. `reason` is their rule; `allow_unclean` permits
        unclean ones in any topic. A partition that may not enter the phase is reported.
        """
        valid = self._filter_valid(partitions, target)
        phases = self._context.partition_phases
        if target is not PartitionPhase.ONLINE:
            for partition in valid:
                phases[partition] = target
            return {}
        batch = RequestBatch(self._parts.sender)
        new = [p for p in valid if phases[p] is PartitionPhase.NEW]
        led_before = [p for p in valid if phases[p] is not PartitionPhase.NEW]
        await self._write_first_states(new, batch)
        results = await self._elect_leaders(led_before, reason, batch, allow_unclean=allow_unclean)
        batch.send()
        return results

    def _filter_valid(
        self, partitions: Iterable[TopicPartition], target: PartitionPhase
    ) -> list[TopicPartition]:
        """Return the partitions that may enter the phase `target`; report the other ones."""
        # Source: C3.
        valid = []
        for partition in partitions:
            phase = self._context.partition_phases.get(partition, PartitionPhase.NON_EXISTENT)
            if phase in PARTITION_COMES_FROM[target]:
                valid.append(partition)
            else:
                self._report_refusal(partition, target, f"it is {phase.value}")
        return valid

    def _report_refusal(
        self, partition: TopicPartition, target: PartitionPhase, reason: str
    ) -> None:
        """Report that a partition does not enter the phase `target`."""
        self._parts.reporter.change_refused(str(partition), target.value, reason)

    # -- new partitions ------------------------------------------------------------------------

    async def _write_first_states(
        self, partitions: list[TopicPartition], batch: RequestBatch
    ) -> None:
        """Write the first state of new partitions: the first live replica leads.

        LeaderAndIsr for their replicas is added to `batch`. A partition without a live replica is
        reported.
        """
        context = self._context
        states: dict[TopicPartition, PartitionStateNode] = {}
        for partition in partitions:
            replicas = context.assignment(partition).replicas
            live = [replica for replica in replicas if context.is_online(replica, partition)]
            if live:
                states[partition] = first_state(live, context.epoch)
            else:
                self._report_refusal(
                    partition, PartitionPhase.ONLINE, f"none of {replicas} is alive"
                )
        results = await self._create_states(states)
        share = self._parts.znodes.turns.begin()
        for partition, error in results.items():
            if share.is_over():
                await share.next()
            state = states[partition]
            if error is not None:
                self._report_refusal(partition, PartitionPhase.ONLINE, str(error))
                continue
            leadership = PartitionLeadership(state, 0)
            context.leaderships[partition] = leadership
            context.partition_phases[partition] = PartitionPhase.ONLINE
            assignment = context.assignment(partition)
            batch.add_leader_and_isr(state.isr, partition, leadership, assignment, is_new=True)

    async def _create_states(
        self, states: dict[TopicPartition, PartitionStateNode]
    ) -> dict[TopicPartition, NodeError | None]:
        """Create the state nodes of new partitions, and their parent nodes before them.

        Returns the error of each partition, None for success. Uses one transaction if no node
        exists yet and the transaction is not too large for the store.
        """
        if not states:
            return {}
        znodes = self._parts.znodes
        topics = dict.fromkeys(partition.topic for partition in states)
        stats = await read_many(znodes.client.exists, map(partitions_path, topics), znodes.turns)
        parents = [path for path, stat in stats.items() if stat is None]
        nodes = [partition_path(partition) for partition in states]
        creations: list[Operation] = [Create(path) for path in (*parents, *nodes)]
        texts: list[Operation] = [
            Create(partition_state_path(partition), encode_partition_state(state))
            for partition, state in states.items()
        ]
        if len(creations) + len(texts) <= CONTROLLER_MULTI_OPERATIONS_MAX:
            (together,) = await znodes.write_groups([creations + texts])
            if not isinstance(together, NodeError):
                return dict.fromkeys(states)
        await znodes.create_missing((*parents, *nodes))
        results = await znodes.write_groups([(creation,) for creation in texts])
        return {
            partition: result if isinstance(result, NodeError) else None
            for partition, result in zip(states, results, strict=True)
        }

    # -- elections -----------------------------------------------------------------------------

    async def _elect_leaders(
        self,
        partitions: list[TopicPartition],
        reason: ElectionReason,
        batch: RequestBatch,
        *,
        allow_unclean: bool,
    ) -> StateResults:
        """Elect a leader for each partition and write it; return the written states.

        A partition without a possible leader has a text with the reason instead. The requests to
        the brokers are added to `batch`.
        """
        if not partitions:
            return {}
        context = self._context
        unclean = dict.fromkeys((p.topic for p in partitions), allow_unclean)
        if reason is ElectionReason.OFFLINE and not allow_unclean:
            await self._read_unclean_settings(unclean)
        elected: dict[TopicPartition, Elected] = {}

        def decide(
            partition: TopicPartition, state: PartitionStateNode
        ) -> PartitionStateNode | str:
            """Return the elected state, or the reason why no leader can be elected."""
            candidates = self._candidates(partition, reason, unclean[partition.topic])
            election = elect(reason, state, candidates, context.epoch)
            if election is None:
                return f"no leader can be elected ({reason.value})"
            elected[partition] = election
            return election.state

        results = await self._writer.change_states(partitions, decide)
        share = self._parts.znodes.turns.begin()
        for partition, written in results.items():
            if share.is_over():
                await share.next()
            if isinstance(written, str):
                self._report_refusal(partition, PartitionPhase.ONLINE, written)
                continue
            context.partition_phases[partition] = PartitionPhase.ONLINE
            context.unclean_elections += elected[partition].is_unclean
            recipients = elected[partition].recipients
            assignment = context.assignment(partition)
            batch.add_leader_and_isr(recipients, partition, written, assignment, is_new=False)
        return results

    async def _read_unclean_settings(self, unclean: dict[str, bool]) -> None:
        """Set each topic in `unclean` to its `unclean.leader.election.enable`,
        read from the store.
        """
        settings = self._parts.settings()
        unclean.update(
            await read_many(
                lambda topic: self._read_unclean_setting(topic, settings),
                unclean,
                self._parts.znodes.turns,
            )
        )

    async def _read_unclean_setting(self, topic: str, settings: BrokerSettings) -> bool:
        """Return `unclean.leader.election.enable` of a topic.

        It is read from the topic's znode, else it is the broker's default.
        """
        path = topic_config_path(topic)
        try:
            data, _ = await self._parts.znodes.client.get(path)
        except NoNode:
            data = None
        config = TopicConfig.of(decode_config(data, path), settings)
        return config.unclean_leader_election_enable

    def _candidates(
        self, partition: TopicPartition, reason: ElectionReason, is_unclean_allowed: bool
    ) -> Candidates:
        """Return the replicas that an election may choose from, and which of them are live."""
        context = self._context
        assignment = context.assignment(partition)
        replicas = assignment.replicas
        if reason is ElectionReason.REASSIGN:
            replicas = tuple(r for r in replicas if r not in assignment.removing_replicas)
        # A broker in controlled shutdown gets LeaderAndIsr, but is not elected.
        is_up = (
            context.is_online_or_stopping
            if reason is ElectionReason.CONTROLLED_SHUTDOWN
            else context.is_online
        )
        return Candidates(
            replicas,
            frozenset(replica for replica in replicas if is_up(replica, partition)),
            frozenset(context.shutting_down),
            is_unclean_allowed,
        )
