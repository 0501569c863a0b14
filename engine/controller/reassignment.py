"""The reassignment of a partition from its original replicas to its target replicas.

Phase U, if the assignment is not the requested one yet:

| step | does |
|---|---|
| U3 | replicas that an earlier request was adding and this one does not: offline, deleted; if one of them was the leader, another is elected |
| U1 | znode of the topic: replicas = target + original, adding = target − original, removing = original − target |
| U2 | the same in memory |

Phase A, while a target replica is not in sync:

| step | does |
|---|---|
| A1 | leader epoch + 1; LeaderAndIsr with the new assignment to original and adding replicas |
| A2 | adding replicas become NEW: LeaderAndIsr to them; then they fetch, and the leader requests a larger ISR |

Phase B, as soon as all target replicas are in sync:

| step | does |
|---|---|
| B1 | adding replicas become ONLINE |
| B2 | in memory: replicas = target, adding and removing empty |
| B3 | a leader that is not a target or not alive: elect a target replica; else leader epoch + 1 |
| B4 | removing replicas become OFFLINE: out of the ISR, LeaderAndIsr to the target, StopReplica |
| B5 | removing replicas are deleted: StopReplica with delete; then they leave the context |
| B6 | znode of the topic: replicas = target, adding and removing empty |
| B7 | the partition is removed from `/admin/reassign_partitions` |
| B8 | UpdateMetadata to all brokers; a postponed deletion of the topic continues |

Replicas {1,2} with leader 1, reassigned to {3,2}:

```
replicas   adding  removing  leader  ISR      leader epoch
[1,2]      []      []        1       [1,2]    0
[3,2,1]    [3]     [1]       1       [1,2]    1             A1
[3,2,1]    [3]     [1]       1       [1,2,3]  1             AlterPartition of the leader
[3,2,1]    [3]     [1]       3       [1,2,3]  2             B3
[3,2,1]    [3]     [1]       3       [2,3]    3             B4
[3,2]      []      []        3       [2,3]    3             B6
```

The znode of the topic changes last, since only it has the original replicas: a controller that
takes over at any step reads them there and continues with A or B. At every step the ISR is a
subset of the assigned replicas (RSN-3), and the old leader leads until B3 (RSN-9).

Source: RSN-1 … RSN-9, C6, KIP-455, ZN:reassign; KafkaController.onPartitionReassignment.
Differs: U3 is the third step in Kafka. As the first step it keeps the ISR within the assigned
replicas, and the next controller finds the replicas to delete if this one fails in between. A
cancellation or replacement that would delete all in-sync replicas is refused. U1 and B6 replace
the partition in the stored assignment, which keeps partitions that were just added. For a
partition that never had a leader, one of its new replicas is elected. If U3 deletes the leader,
another replica is elected; in Kafka the partition may stay without a leader. An error in one
partition does not stop the other partitions of a failover.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.controller.cluster_reader import read_leaderships, read_topic
from engine.controller.context import PartitionLeadership
from engine.controller.elections import ElectionReason
from engine.controller.machines import Machines
from engine.controller.reassignment_node import ReassignmentNode
from engine.controller.reassignment_rules import (
    NO_SUCH_PARTITION,
    ReassignmentResult,
    check_deletion,
    is_caught_up,
    original_replicas,
    target_replicas,
    unwanted_replicas,
)
from engine.controller.request_batch import RequestBatch
from engine.controller.state_writer import StateWriter
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.errors import EngineError
from engine.hash_order import partitions_in_hash_order
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.znode.errors import BadVersion
from engine.znode.model import SetData
from engine.znode.paths import topic_path
from engine.znode.values import (
    NO_LEADER,
    PartitionAssignment,
    PartitionStateNode,
    encode_topic,
)


class ReassignmentStuck(EngineError):
    """A step of a reassignment failed; the next event of the partition retries it."""

    def __init__(self, partition: TopicPartition, reason: str) -> None:
        super().__init__(f"{partition} cannot be reassigned: {reason}")
        self.partition = partition
        self.reason = reason


class Reassignment:
    """Runs the phases of reassignments; only events of the controller call it."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._context = machines.context
        self._znodes = machines.parts.znodes
        #: Writes partition states, and keeps the context equal to them.
        self._writer = StateWriter(machines.context, machines.parts.znodes)
        #: The znode of reassignments that tools before 2.4 write.
        self.node = ReassignmentNode(machines.parts.znodes, machines.parts.reporter)

    async def start_reassignments(
        self, plan: dict[TopicPartition, PartitionAssignment]
    ) -> dict[TopicPartition, ReassignmentResult]:
        """Start reassignments, or replace those in progress; return the result of each partition.

        `plan` has the assignment during the reassignment. The order is Kafka's, since brokers
        assign replicas to log directories in the order of the requests.

        Source: KafkaController.maybeTriggerPartitionReassignment, which goes through a hash map.
        """
        results = {}
        for partition in partitions_in_hash_order(plan):
            assignment = plan[partition]
            refusal = self._check_plan(partition, assignment)
            if refusal is not None:
                results[partition] = refusal
                continue
            try:
                await self._run_phases(partition, assignment)
            except ReassignmentStuck as error:
                self._report(error)
                results[partition] = ReassignmentResult(UNKNOWN_SERVER_ERROR)
                continue
            results[partition] = ReassignmentResult()
        return results

    def _check_plan(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> ReassignmentResult | None:
        """Return the refusal of a reassignment, None if it may start.

        It is refused for an unknown partition, and if no in-sync replica would remain.
        """
        before = self._context.assignment(partition)
        if not before.replicas or partition.topic in self._context.to_delete:
            return NO_SUCH_PARTITION
        leadership = self._context.leaderships.get(partition)
        isr = () if leadership is None else leadership.state.isr
        return check_deletion(unwanted_replicas(before, assignment), isr)

    async def resume_reassignments(self, is_wanted: Callable[[PartitionAssignment], bool]) -> None:
        """Continue the reassignments whose assignment satisfies `is_wanted`.

        Called after a failover and after the start of a broker.
        """
        for partition in partitions_in_hash_order(self._context.reassigning):
            assignment = self._context.assignment(partition)
            if is_wanted(assignment):
                await self._continue(partition, assignment)

    async def on_isr_changes(self, partitions: Iterable[TopicPartition]) -> None:
        """Complete the reassignments of those partitions whose ISR has all target replicas now."""
        for partition in partitions:
            if partition not in self._context.reassigning:
                continue
            assignment = self._context.assignment(partition)
            if await self._is_caught_up(partition, assignment):
                await self._continue(partition, assignment)

    async def _continue(self, partition: TopicPartition, assignment: PartitionAssignment) -> None:
        """Run the next step of a reassignment.

        One that is stuck is reported, and its next event retries.
        """
        try:
            await self._run_phases(partition, assignment)
        except ReassignmentStuck as error:
            self._report(error)

    def _report(self, error: ReassignmentStuck) -> None:
        """Report a reassignment that is stuck; other reassignments continue."""
        self._machines.parts.reporter.event_failed("PartitionReassignment", error)

    async def _run_phases(self, partition: TopicPartition, assignment: PartitionAssignment) -> None:
        """Run the phases of a reassignment: store the assignment (U).

        Then complete the reassignment if the targets are in sync (B). Otherwise start the new
        replicas (A). Raises ReassignmentStuck.
        """
        self._machines.deletion.mark_ineligible((partition.topic,))
        await self._update_assignment(partition, assignment)
        if partition not in self._context.leaderships:
            await self._elect_first_leader(partition, assignment)
        if await self._is_caught_up(partition, assignment):
            await self._complete_reassignment(partition, assignment)
        elif partition in self._context.leaderships:
            await self._add_replicas(partition, assignment)

    async def _is_caught_up(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> bool:
        """True if the stored ISR has all target replicas, and the reassignment can complete."""
        # Read from the store: a broker before 2.7 writes the ISR itself.
        leaderships = await read_leaderships(self._znodes.client, (partition,), self._znodes.turns)
        leadership = leaderships.get(partition)
        return is_caught_up(assignment, () if leadership is None else leadership.state.isr)

    async def _update_assignment(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Store the new assignment in the topic's znode.

        Before that, delete replicas that only an earlier target has.
        """
        before = self._context.assignment(partition)
        if before != assignment:
            # U3
            await self._delete_replicas(partition, unwanted_replicas(before, assignment))
            await self._replace_lost_leader(partition)
            # U1
            await self._store_assignment(partition, assignment)
            # U2
            self._context.assign(partition, assignment)
        self._context.reassigning.add(partition)

    async def _replace_lost_leader(self, partition: TopicPartition) -> None:
        """Elect a leader if the deletion of replicas removed it.

        Without one no replica catches up.
        """
        leadership = self._context.leaderships.get(partition)
        if leadership is not None and leadership.state.leader == NO_LEADER:
            await self._machines.partitions.change_phase(
                [partition], PartitionPhase.ONLINE, ElectionReason.OFFLINE
            )

    async def _elect_first_leader(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Elect one of the new replicas of a partition that never had a leader."""
        added = self._unstarted_replicas(partition, assignment)
        await self._machines.replicas.change_phase(added, ReplicaPhase.NEW)
        await self._machines.partitions.change_phase([partition], PartitionPhase.ONLINE)
        await self._machines.replicas.change_phase(added, ReplicaPhase.ONLINE)

    def _unstarted_replicas(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> list[Replica]:
        """Return the adding replicas that have no phase yet: they were not started."""
        phases = self._context.replica_phases
        replicas = [Replica(partition, broker_id) for broker_id in assignment.adding_replicas]
        absent = ReplicaPhase.NON_EXISTENT
        return [replica for replica in replicas if phases.get(replica, absent) is absent]

    async def _add_replicas(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Raise the leader epoch, and start the replicas that the reassignment adds."""
        # A1
        await self._raise_leader_epoch(partition, assignment)
        # A2
        added = self._unstarted_replicas(partition, assignment)
        await self._machines.replicas.change_phase(added, ReplicaPhase.NEW)

    async def _complete_reassignment(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Complete a reassignment whose target replicas are in sync.

        Moves the leader to a target replica, and deletes the other replicas.
        """
        context, machines = self._context, self._machines
        # B1
        added = [Replica(partition, broker_id) for broker_id in assignment.adding_replicas]
        await machines.replicas.change_phase(added, ReplicaPhase.ONLINE)
        # B2
        completed = PartitionAssignment(target_replicas(assignment))
        context.assign(partition, completed)
        # B3
        await self._move_leader(partition, completed)
        # B4, B5
        await self._delete_replicas(partition, assignment.removing_replicas)
        # B6
        await self._store_assignment(partition, completed)
        # B7
        context.reassigning.discard(partition)
        await self.node.remove_done(
            lambda other, target: other == partition and target == completed.replicas
        )
        # B8
        machines.send_metadata(context.live_ids(), [partition])
        await machines.deletion.resume_topics((partition.topic,))

    async def _move_leader(self, partition: TopicPartition, completed: PartitionAssignment) -> None:
        """Give the partition a leader among the target replicas.

        A live leader among them stays, with a raised epoch; otherwise one is elected.
        """
        leadership = self._context.leaderships.get(partition)
        leader = NO_LEADER if leadership is None else leadership.state.leader
        if leader in completed.replicas and self._context.is_online(leader, partition):
            await self._raise_leader_epoch(partition, completed)
            return
        await self._machines.partitions.change_phase(
            [partition], PartitionPhase.ONLINE, ElectionReason.REASSIGN
        )

    async def _delete_replicas(self, partition: TopicPartition, broker_ids: Iterable[int]) -> None:
        """Delete the replicas that a partition no longer has.

        They leave the ISR, get StopReplica with delete, and leave the context. The responses are
        not waited for.
        """
        replicas = [Replica(partition, broker_id) for broker_id in broker_ids]
        for phase in (
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_STARTED,
            ReplicaPhase.DELETION_SUCCESSFUL,
            ReplicaPhase.NON_EXISTENT,
        ):
            await self._machines.replicas.change_phase(replicas, phase)

    # -- writes --------------------------------------------------------------------------------

    async def _store_assignment(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Write the assignment of a partition into its topic's znode.

        It is repeated after a concurrent write. Raises ReassignmentStuck if the topic does not
        exist.
        """
        topic, index = partition
        while True:
            stored = await read_topic(self._znodes.client, topic)
            if stored is None:
                raise ReassignmentStuck(partition, "its topic is gone")
            partitions = {**stored.assignment.partitions, index: assignment}
            data = encode_topic(stored.assignment._replace(partitions=partitions))
            try:
                await self._znodes.write([SetData(topic_path(topic), data, stored.version)])
            except BadVersion:
                continue
            return

    async def _raise_leader_epoch(
        self, partition: TopicPartition, assignment: PartitionAssignment
    ) -> None:
        """Write and send a partition's state with the next leader epoch; leader and ISR stay.

        The leader gets the new assignment with it. Raises ReassignmentStuck.
        """
        context = self._context

        def decide(_partition: TopicPartition, state: PartitionStateNode) -> PartitionStateNode:
            """Return the state with the next leader epoch."""
            return state._replace(
                leader_epoch=state.leader_epoch + 1, controller_epoch=context.epoch
            )

        result = (await self._writer.change_states([partition], decide))[partition]
        if isinstance(result, str):
            raise ReassignmentStuck(partition, result)
        self._send_assignment(partition, assignment, result)

    def _send_assignment(
        self,
        partition: TopicPartition,
        assignment: PartitionAssignment,
        leadership: PartitionLeadership,
    ) -> None:
        """Send LeaderAndIsr to the original replicas, and with `is_new` to those being added."""
        batch = RequestBatch(self._machines.parts.sender)
        # The broker chooses a directory for a new replica; an old replica has one.
        for broker_ids, is_new in (
            (original_replicas(assignment), False),
            (assignment.adding_replicas, True),
        ):
            batch.add_leader_and_isr(broker_ids, partition, leadership, assignment, is_new=is_new)
        batch.send()
