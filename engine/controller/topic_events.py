"""The controller's events about topics: created, extended, deleted.

| event | work |
|---|---|
| new topic, new partition | partitions NEW, replicas NEW, partitions ONLINE, replicas ONLINE |
| a topic's node deleted by another writer | the topic is removed from the context |
| topics to delete | existing topics are queued, requests for unknown topics deleted |
| partitions added to a topic to delete | its node is written without them |

Each event first sets its watch again, then reads the complete state from the znodes.

Source: CTL-6, CTL-13; Kafka's KafkaController.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from engine.controller.cluster_reader import (
    StoredTopic,
    read_leaderships,
    read_many,
    read_topic,
)
from engine.controller.elections import ElectionReason
from engine.controller.machines import Machines
from engine.controller.states import PartitionPhase, ReplicaPhase
from engine.controller.topic_ids import random_topic_id
from engine.host.ports import Entropy
from engine.ids import InvalidUuid, uuid_text
from engine.model import TopicPartition
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import EventType, SetData
from engine.znode.paths import DELETE_TOPICS, TOPICS, partitions_path, topic_path
from engine.znode.values import PartitionAssignment, TopicAssignment, encode_topic


class TopicEvents:
    """Handles the controller's events about topics."""

    def __init__(self, machines: Machines, entropy: Entropy) -> None:
        """Create the handlers of topics' events; `entropy` generates ids for topics without one."""
        self._machines = machines
        self._context = machines.context
        self._client = machines.parts.znodes.client
        self._turns = machines.parts.znodes.turns
        self._entropy = entropy

    async def load_topics(self) -> None:
        """Read all topics, leaders and ISRs into the context at a failover; watch their znodes."""
        topics = await self._watch_topics()
        await self._store_topics(await self._read(topics))
        await self._watch_deletions()
        partitions = self._context.partitions()
        self._context.load_leaderships(
            await read_leaderships(self._client, partitions, self._turns)
        )

    async def load_deletions(self) -> None:
        """Queue the deletions that were requested before a failover; brokers and topics are loaded.

        Topics with an offline replica or a reassignment wait.
        """
        context = self._context
        requested = set(await self._client.children(DELETE_TOPICS))
        waiting = context.topics_with_offline_replicas(context.topics)
        waiting |= {partition.topic for partition in context.reassigning}
        await self._machines.deletion.load_requests(requested, waiting)

    async def on_topics(self) -> None:
        """Create the partitions of new topics, and remove topics whose node was deleted."""
        stored_names = frozenset(await self._watch_topics())
        for topic in [name for name in self._context.topics if name not in stored_names]:
            self._machines.watches.disarm(topic_path(topic))
            self._context.remove_topic(topic)
        new = [name for name in sorted(stored_names) if name not in self._context.topics]
        read = await self._read(new)
        await self._store_topics(read)
        await self._create_partitions(
            TopicPartition(topic, index)
            for topic, stored in read.items()
            for index in stored.assignment.partitions
        )

    async def on_partitions(self, topic: str) -> None:
        """Create the partitions that were added to a topic whose znode has changed.

        While the topic is being deleted they are removed again.
        """
        if topic not in self._context.topics:
            return
        await self._watch_topic(topic)
        stored = await read_topic(self._client, topic)
        if stored is None:
            return
        before = self._context.topics[topic]
        added = {
            TopicPartition(topic, index): assignment
            for index, assignment in stored.assignment.partitions.items()
            if index not in before
        }
        if not added:
            return
        if topic in self._context.to_delete:
            await self._remove_added_partitions(topic, stored)
            return
        for partition, assignment in added.items():
            self._context.assign(partition, assignment)
        await self._create_partitions(added)

    async def on_deletions(self) -> None:
        """Queue the topics whose deletion is requested; drop requests for unknown topics.

        Without `delete.topic.enable` all requests are dropped.
        """
        await self._watch_deletions()
        requested = set(await self._client.children(DELETE_TOPICS))
        deletion = self._machines.deletion
        unknown = {topic for topic in requested if topic not in self._context.topics}
        if unknown:
            await deletion.drop_requests(unknown)
        existing = requested - unknown
        if not deletion.is_enabled:
            await deletion.drop_requests(existing)
        elif existing:
            moving = {partition.topic for partition in self._context.reassigning}
            self._context.ineligible_for_deletion |= existing & moving
            await deletion.enqueue(existing)

    # -- watches and reads ---------------------------------------------------------------------

    async def _watch_topics(self) -> list[str]:
        """Watch the list of topics; a change queues `on_topics`. Returns their present names."""
        await self._machines.watches.arm_children(
            TOPICS, partial(self._machines.put, "TopicChange", self.on_topics)
        )
        return await self._client.children(TOPICS)

    async def _watch_deletions(self) -> None:
        """Queue `on_deletions` at the next request to delete a topic."""
        await self._machines.watches.arm_children(
            DELETE_TOPICS, partial(self._machines.put, "TopicDeletion", self.on_deletions)
        )

    async def _watch_topic(self, topic: str) -> None:
        """Queue `on_partitions` at the next change of a topic's znode."""

        def on_event(event: EventType) -> None:
            """Queue the reading of the topic's changed assignment."""
            if event is EventType.DATA_CHANGED:
                work = partial(self.on_partitions, topic)
                self._machines.put(f"PartitionModifications({topic})", work)

        await self._machines.watches.arm_node(topic_path(topic), on_event)

    async def _read(self, topics: Iterable[str]) -> dict[str, StoredTopic]:
        """Set the watches of topics' znodes and read these.

        Returns them by name, without absent ones and those that are invalid.
        """
        stored_topics = await read_many(self._read_watched, topics, self._turns)
        return {topic: stored for topic, stored in stored_topics.items() if stored is not None}

    async def _read_watched(self, topic: str) -> StoredTopic | None:
        """Watch and read a topic; return None if it is absent or cannot be parsed."""
        await self._watch_topic(topic)
        try:
            return await read_topic(self._client, topic)
        except (InvalidZnodeValue, InvalidUuid) as error:
            # An invalid node of one topic must not stop the other topics.
            self._machines.parts.reporter.event_failed(f"Topic({topic})", error)
            return None

    # -- changes -------------------------------------------------------------------------------

    async def _store_topics(self, read: Mapping[str, StoredTopic]) -> None:
        """Store topics that were read in the context.

        That is their ids (created if missing), assignments and reassignments.
        """
        share = self._turns.begin()
        for topic, stored in read.items():
            if share.is_over():
                await share.next()
            topic_id = stored.topic_id
            if topic_id is None:
                topic_id = await self._create_topic_id(topic, stored)
            self._context.name_topic(topic, topic_id)
            self._context.topics.setdefault(topic, {})
            for index, assignment in stored.assignment.partitions.items():
                partition = TopicPartition(topic, index)
                self._context.assign(partition, assignment)
                if assignment.adding_replicas or assignment.removing_replicas:
                    self._context.reassigning.add(partition)

    async def _create_topic_id(self, topic: str, stored: StoredTopic) -> bytes:
        """Write a new id into the node of a topic that was created before 2.8; return the id."""
        topic_id = random_topic_id(self._entropy)
        data = encode_topic(stored.assignment._replace(topic_id=uuid_text(topic_id)))
        await self._machines.parts.znodes.write([SetData(topic_path(topic), data, stored.version)])
        return topic_id

    async def _create_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Change new partitions and replicas to NEW, then to ONLINE, which elects leaders."""
        created = list(partitions)
        machines = self._machines
        replicas = self._context.replicas_of(created)
        await machines.partitions.change_phase(created, PartitionPhase.NEW)
        await machines.replicas.change_phase(replicas, ReplicaPhase.NEW)
        await machines.partitions.change_phase(
            created, PartitionPhase.ONLINE, ElectionReason.OFFLINE
        )
        await machines.replicas.change_phase(replicas, ReplicaPhase.ONLINE)

    async def _remove_added_partitions(self, topic: str, stored: StoredTopic) -> None:
        """Write a topic's znode without the partitions added during its deletion."""
        try:
            existing = frozenset(await self._client.children(partitions_path(topic)))
        except NoNode:
            existing = frozenset()
        kept: dict[int, PartitionAssignment] = {
            index: assignment
            for index, assignment in self._context.topics[topic].items()
            if str(index) in existing
        }
        topic_id = uuid_text(self._context.topic_ids[topic])
        data = encode_topic(TopicAssignment(topic_id, kept))
        await self._machines.parts.znodes.write([SetData(topic_path(topic), data, stored.version)])
