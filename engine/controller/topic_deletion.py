"""Delete topics; a deletion waits while a replica is offline or reassigned.

```
/admin/delete_topics/t ──> queued ── a replica is offline, or is reassigned ──> ineligible
                             │                                                      │
                             v                              broker up, reassigned <─┘
   1 partitions OFFLINE, then NON_EXISTENT; all brokers get leader −2
   2 replicas on dead brokers DELETION_INELIGIBLE
   3 other replicas OFFLINE (StopReplica), then DELETION_STARTED (StopReplica with delete)
                             │ all brokers have answered without an error
                             v
   4 replicas DELETION_SUCCESSFUL, then NON_EXISTENT
   5 znodes deleted: those of the partitions first, the request last
```

A controller that takes over in between begins at 1; the deletion of an absent replica succeeds.

Source: C8, CTL-13, ZN:delete-topic; Kafka's TopicDeletionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from engine.controller.cluster_reader import read_many
from engine.controller.context import ControllerContext
from engine.controller.machine_parts import MachineParts
from engine.controller.partition_machine import PartitionMachine
from engine.controller.replica_machine import ReplicaMachine
from engine.controller.request_batch import RequestBatch
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.znode.paths import delete_topic_path, topic_config_path, topic_path


class TopicDeletion:
    """Runs the deletions of topics; only events of the controller call it."""

    def __init__(
        self,
        parts: MachineParts,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        *,
        is_enabled: bool,
        on_gone: Callable[[str], None],
    ) -> None:
        """Create the deletion of topics; none is queued.

        `on_gone` is called with a topic whose replicas are deleted, before its znodes are deleted.
        """
        self._parts = parts
        self._context: ControllerContext = parts.context
        self._partitions = partitions
        self._replicas = replicas
        self._on_gone = on_gone
        #: `delete.topic.enable`; if False requests for deletions are discarded.
        self.is_enabled = is_enabled

    async def load_requests(self, topics: set[str], ineligible: set[str]) -> None:
        """Queue the deletions that were requested before a failover; `ineligible` ones wait.

        Without `delete.topic.enable` the requests are deleted.
        """
        if not self.is_enabled:
            await self.drop_requests(topics)
            return
        self._context.to_delete |= topics
        self._context.ineligible_for_deletion |= ineligible & self._context.to_delete

    async def drop_requests(self, topics: Iterable[str]) -> None:
        """Delete the znodes of deletion requests that are not carried out."""
        await self._parts.znodes.delete_all([delete_topic_path(topic) for topic in sorted(topics)])

    async def enqueue(self, topics: set[str]) -> None:
        """Queue topics for deletion, and start those whose replicas are all available."""
        self._context.to_delete |= topics
        await self.continue_deletions()

    async def resume_topics(self, topics: Iterable[str]) -> None:
        """Continue the deletions of those of `topics` that are queued and not being reassigned.

        These topics become eligible again. Called when a broker started or a reassignment ended.
        Differs: Kafka does not check whether another partition of the topic is still reassigned.
        """
        moving = {partition.topic for partition in self._context.reassigning}
        waiting = self._context.to_delete & set(topics) - moving
        if waiting:
            self._context.ineligible_for_deletion -= waiting
            await self.continue_deletions()

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Postpone the deletion of those of `topics` that are queued for deletion."""
        self._context.ineligible_for_deletion |= self._context.to_delete & set(topics)

    async def fail_replicas(self, replicas: Iterable[Replica]) -> None:
        """Note replicas that could not be deleted (DELETION_INELIGIBLE), and postpone topics."""
        failed = self._replicas_to_delete(replicas)
        if failed:
            await self._replicas.change_phase(failed, ReplicaPhase.DELETION_INELIGIBLE)
            self.mark_ineligible(replica.partition.topic for replica in failed)
            await self.continue_deletions()

    async def complete_replicas(self, replicas: Iterable[Replica]) -> None:
        """Note replicas that brokers have deleted (DELETION_SUCCESSFUL), and continue."""
        done = self._replicas_to_delete(replicas)
        await self._replicas.change_phase(done, ReplicaPhase.DELETION_SUCCESSFUL)
        await self.continue_deletions()

    async def continue_deletions(self) -> None:
        """Complete, retry or start each queued deletion as its replicas' phases allow."""
        done, retry, start = [], [], []
        share = self._parts.znodes.turns.begin()
        for topic in sorted(self._context.to_delete):
            if share.is_over():
                await share.next()
            phases = self._phases_of(topic)
            if phases <= {ReplicaPhase.DELETION_SUCCESSFUL}:
                done.append(topic)
                continue
            if ReplicaPhase.DELETION_STARTED in phases:
                continue
            if ReplicaPhase.DELETION_INELIGIBLE in phases:
                retry.append(topic)
            if topic not in self._context.ineligible_for_deletion:
                start.append(topic)
        if done:
            await self._complete_deletions(done)
        for topic in retry:
            failed = self._context.replicas_in_phase(topic, ReplicaPhase.DELETION_INELIGIBLE)
            await self._replicas.change_phase(failed, ReplicaPhase.OFFLINE)
        if start:
            await self._start_deletions(start)

    def _phases_of(self, topic: str) -> set[ReplicaPhase]:
        """Return the phases in which a topic's replicas are."""
        context = self._context
        return {
            context.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)
            for replica in context.replicas_of(context.partitions_of(topic))
        }

    def _replicas_to_delete(self, replicas: Iterable[Replica]) -> list[Replica]:
        """Return the assigned replicas of topics that are queued for deletion.

        Other deleted replicas were removed by a reassignment.
        """
        context = self._context
        return [
            replica
            for replica in replicas
            if replica.partition.topic in context.to_delete
            and replica.broker_id in context.assignment(replica.partition).replicas
        ]

    async def _start_deletions(self, topics: list[str]) -> None:
        """Start deletions: set partitions NON_EXISTENT, and order live brokers to delete replicas.

        Topics with a replica on a dead broker become ineligible until the broker returns.
        """
        context = self._context
        # 1
        unseen = [topic for topic in topics if topic not in context.deletion_started]
        partitions = [p for topic in unseen for p in context.partitions_of(topic)]
        await self._partitions.change_phase(partitions, PartitionPhase.OFFLINE)
        await self._partitions.change_phase(partitions, PartitionPhase.NON_EXISTENT)
        context.deletion_started.update(unseen)
        batch = RequestBatch(self._parts.sender)
        all_partitions = [p for topic in topics for p in context.partitions_of(topic)]
        share = self._parts.znodes.turns.begin()
        for partition in all_partitions:
            if share.is_over():
                await share.next()
            batch.add_update_metadata(context.live_ids(), (partition,))
        batch.send()
        # 2, 3
        dead = []
        alive = []
        for replica in context.replicas_of(all_partitions):
            if not context.is_online(replica.broker_id, replica.partition):
                dead.append(replica)
            elif context.replica_phases.get(replica) is not ReplicaPhase.DELETION_SUCCESSFUL:
                alive.append(replica)
        await self._replicas.change_phase(dead, ReplicaPhase.DELETION_INELIGIBLE)
        await self._replicas.change_phase(alive, ReplicaPhase.OFFLINE)
        await self._replicas.change_phase(alive, ReplicaPhase.DELETION_STARTED)
        self.mark_ineligible(replica.partition.topic for replica in dead)

    async def _list_nodes(self, topic: str) -> list[str]:
        """Return the paths of a deleted topic's znodes, children first, the request last."""
        znodes = self._parts.znodes
        paths = await znodes.list_tree(topic_path(topic))
        others = (topic_config_path(topic), delete_topic_path(topic))
        stats = await read_many(znodes.client.exists, others, znodes.turns)
        return paths + [path for path in others if stats[path] is not None]

    async def _complete_deletions(self, topics: list[str]) -> None:
        """Delete the znodes of topics without replicas, and remove the topics from the context."""
        context = self._context
        znodes = self._parts.znodes
        share = znodes.turns.begin()
        # 4
        for topic in topics:
            if share.is_over():
                await share.next()
            # An event about the topic's node must not add it again during the deletion.
            self._on_gone(topic)
            replicas = context.replicas_in_phase(topic, ReplicaPhase.DELETION_SUCCESSFUL)
            await self._replicas.change_phase(replicas, ReplicaPhase.NON_EXISTENT)
        # 5
        trees = await read_many(self._list_nodes, topics, znodes.turns)
        await znodes.delete_all(chain.from_iterable(trees.values()))
        for topic in topics:
            if share.is_over():
                await share.next()
            context.remove_topic(topic)
