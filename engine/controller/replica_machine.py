"""The state machine of replicas: changes their phases (`states`).

| to | does |
|---|---|
| NEW | LeaderAndIsr (is_new) if the partition has a leader, which must be another replica |
| ONLINE | LeaderAndIsr, except from NEW: the election of the partition's leader sends it |
| OFFLINE | StopReplica; out of the ISR (`state`); LeaderAndIsr to the other replicas |
| DELETION_STARTED | StopReplica with delete |
| DELETION_INELIGIBLE, DELETION_SUCCESSFUL | sets the phase |
| NON_EXISTENT | removes it from the assignment in memory |

Source: CTL-7, CTL-10, ZN:broker-dies; Kafka's ZkReplicaStateMachine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.controller.context import PartitionLeadership
from engine.controller.elections import remove_replica
from engine.controller.machine_parts import MachineParts
from engine.controller.request_batch import RequestBatch
from engine.controller.state_writer import StateWriter
from engine.controller.states import REPLICA_COMES_FROM, Replica, ReplicaPhase
from engine.model import TopicPartition
from engine.znode.values import PartitionAssignment, PartitionStateNode


class ReplicaMachine:
    """Changes the phases of replicas; only events of the controller call it."""

    def __init__(self, parts: MachineParts) -> None:
        """Create the state machine of replicas; their phases are in the controller context."""
        self._parts = parts
        self._context = parts.context
        self._writer = StateWriter(parts.context, parts.znodes)
        #: Changes one replica to the phase.
        self._steps: dict[ReplicaPhase, Callable[[Replica, RequestBatch], None]] = {
            ReplicaPhase.NEW: self._make_new,
            ReplicaPhase.ONLINE: self._bring_online,
            ReplicaPhase.DELETION_STARTED: self._start_deletion,
            ReplicaPhase.DELETION_SUCCESSFUL: self._note_success,
            ReplicaPhase.DELETION_INELIGIBLE: self._note_ineligible,
            ReplicaPhase.NON_EXISTENT: self._remove_replica,
        }

    async def set_initial_phases(self) -> None:
        """Set the phase of each replica after a failover, and send live brokers LeaderAndIsr.

        A replica on a dead broker is DELETION_INELIGIBLE: the deletion of its topic waits for the
        broker.
        """
        context = self._context
        replicas = context.replicas_of(context.partitions())
        online = [r for r in replicas if context.is_online(r.broker_id, r.partition)]
        up = frozenset(online)
        offline = [replica for replica in replicas if replica not in up]
        for replica in online:
            context.replica_phases[replica] = ReplicaPhase.ONLINE
        for replica in offline:
            context.replica_phases[replica] = ReplicaPhase.DELETION_INELIGIBLE
        await self.change_phase(online, ReplicaPhase.ONLINE)
        await self.change_phase(offline, ReplicaPhase.OFFLINE)

    async def change_phase(self, replicas: Iterable[Replica], target: ReplicaPhase) -> None:
        """Change replicas to the phase `target`, and send the requests that this needs.

        An invalid change is reported, and the replica keeps its phase.
        """
        valid = self._filter_valid(replicas, target)
        if not valid:
            return
        batch = RequestBatch(self._parts.sender)
        if target is ReplicaPhase.OFFLINE:
            by_broker: dict[int, list[TopicPartition]] = {}
            for replica in valid:
                by_broker.setdefault(replica.broker_id, []).append(replica.partition)
            for broker_id, partitions in by_broker.items():
                await self._take_offline(broker_id, partitions, batch)
        else:
            step = self._steps[target]
            share = self._parts.znodes.turns.begin()
            for replica in valid:
                if share.is_over():
                    await share.next()
                step(replica, batch)
        batch.send()

    def _filter_valid(self, replicas: Iterable[Replica], target: ReplicaPhase) -> list[Replica]:
        """Return the replicas that may enter the phase `target`; report the other ones."""
        # Source: C3.
        valid = []
        for replica in replicas:
            # A replica that was removed has no phase: a broker may respond late about it.
            phase = self._context.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)
            if phase in REPLICA_COMES_FROM[target]:
                valid.append(replica)
            else:
                self._report_refusal(replica, target, f"it is {phase.value}")
        return valid

    def _report_refusal(self, replica: Replica, target: ReplicaPhase, reason: str) -> None:
        """Report that a replica does not enter the phase `target`."""
        self._parts.reporter.change_refused(str(replica), target.value, reason)

    def _make_new(self, replica: Replica, batch: RequestBatch) -> None:
        """Set a replica NEW; add LeaderAndIsr to the batch if its partition has a leader."""
        leadership = self._context.leaderships.get(replica.partition)
        if leadership is not None:
            if leadership.state.leader == replica.broker_id:
                self._report_refusal(replica, ReplicaPhase.NEW, "it is to become the leader")
                return
            self._send_state(replica, leadership, batch, is_new=True)
        self._context.replica_phases[replica] = ReplicaPhase.NEW

    def _bring_online(self, replica: Replica, batch: RequestBatch) -> None:
        """Set a replica ONLINE; add LeaderAndIsr to the batch unless the replica was NEW.

        A NEW replica gets its LeaderAndIsr with the election of the leader.
        """
        leadership = self._context.leaderships.get(replica.partition)
        is_new = self._context.replica_phases[replica] is ReplicaPhase.NEW
        if leadership is not None and not is_new:
            self._send_state(replica, leadership, batch, is_new=False)
        self._context.replica_phases[replica] = ReplicaPhase.ONLINE

    def _start_deletion(self, replica: Replica, batch: RequestBatch) -> None:
        """Set a replica DELETION_STARTED; add StopReplica with delete to the batch."""
        self._context.replica_phases[replica] = ReplicaPhase.DELETION_STARTED
        batch.add_stop_replica(replica.broker_id, replica.partition, delete=True)

    def _note_success(self, replica: Replica, batch: RequestBatch) -> None:
        """Set a replica DELETION_SUCCESSFUL: its broker deleted it."""
        self._context.replica_phases[replica] = ReplicaPhase.DELETION_SUCCESSFUL

    def _note_ineligible(self, replica: Replica, batch: RequestBatch) -> None:
        """Set a replica DELETION_INELIGIBLE: the deletion of its topic waits."""
        self._context.replica_phases[replica] = ReplicaPhase.DELETION_INELIGIBLE

    def _remove_replica(self, replica: Replica, batch: RequestBatch) -> None:
        """Remove a replica from its partition's assignment and from the context."""
        partition, broker_id = replica
        assignment = self._context.assignment(partition)
        rest = (tuple(b for b in brokers if b != broker_id) for brokers in assignment)
        self._context.assign(partition, PartitionAssignment(*rest))
        del self._context.replica_phases[replica]

    def _send_state(
        self,
        replica: Replica,
        leadership: PartitionLeadership,
        batch: RequestBatch,
        *,
        is_new: bool,
    ) -> None:
        """Add to the batch LeaderAndIsr for one replica, with its partition's state."""
        partition, broker_id = replica
        assignment = self._context.assignment(partition)
        batch.add_leader_and_isr((broker_id,), partition, leadership, assignment, is_new=is_new)

    async def _take_offline(
        self, broker_id: int, partitions: list[TopicPartition], batch: RequestBatch
    ) -> None:
        """Set a broker's replicas OFFLINE: StopReplica for it, and its removal from the ISRs.

        The other replicas get LeaderAndIsr with the smaller ISR. The requests are added to `batch`.
        """
        context = self._context
        share = self._parts.znodes.turns.begin()
        for partition in partitions:
            if share.is_over():
                await share.next()
            batch.add_stop_replica(broker_id, partition, delete=False)
        led = [p for p in partitions if p in context.leaderships]
        never_led = [p for p in partitions if p not in context.leaderships]
        for partition, leadership in (await self._shrink_isr(broker_id, led)).items():
            if share.is_over():
                await share.next()
            if not context.is_being_deleted(partition.topic):
                assignment = context.assignment(partition)
                others = [b for b in assignment.replicas if b != broker_id]
                batch.add_leader_and_isr(others, partition, leadership, assignment, is_new=False)
            context.replica_phases[Replica(partition, broker_id)] = ReplicaPhase.OFFLINE
        for partition in never_led:
            batch.add_update_metadata(context.live_ids(), (partition,))
            context.replica_phases[Replica(partition, broker_id)] = ReplicaPhase.OFFLINE

    async def _shrink_isr(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, PartitionLeadership]:
        """Remove a broker from the ISRs of partitions; return their states, changed or not.

        A partition whose state cannot be written is reported and left out.
        """
        context = self._context

        def decide(
            partition: TopicPartition, state: PartitionStateNode
        ) -> PartitionStateNode | None:
            """Return the state without the broker's replica, None if it is not in the ISR."""
            if broker_id not in state.isr:
                return None
            return remove_replica(state, broker_id, context.epoch)

        leaderships = {}
        for partition, written in (await self._writer.change_states(partitions, decide)).items():
            if isinstance(written, str):
                replica = Replica(partition, broker_id)
                self._report_refusal(replica, ReplicaPhase.OFFLINE, written)
            else:
                leaderships[partition] = written
        return leaderships
