"""The controller's copy of the cluster state in the znodes: loaded at failover, then updated.

This module decides and writes nothing; the state machines update it after each znode write (CTL-5).

Source: Kafka's ControllerContext.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode
from engine.znode.values import NO_LEADER, PartitionAssignment, PartitionStateNode

#: The leader and the leader epoch in requests about a topic that is being deleted.
DELETED = -2
_NO_EPOCH = -1
_NOTHING = PartitionAssignment(())


class LiveBroker(NamedTuple):
    """A registered broker; its epoch is the id of the transaction that registered it."""

    node: BrokerNode
    epoch: int


class PartitionLeadership(NamedTuple):
    """Leader and ISR, with the version of their node as the partition epoch."""

    state: PartitionStateNode
    partition_epoch: int


class ControllerContext:
    """Brokers, topics, assignments, leaders, and the phases of partitions and replicas."""

    def __init__(self) -> None:
        """Create an empty context, that of a broker that is not the controller."""
        #: These two dicts are cleared and never replaced: readers keep a reference to them.
        self.partition_phases: dict[TopicPartition, PartitionPhase] = {}
        self.replica_phases: dict[Replica, ReplicaPhase] = {}
        #: Number of unclean elections by this broker as the controller.
        self.unclean_elections = 0
        self.reset()

    def reset(self) -> None:
        """Clear all state of the cluster, because this broker resigns as controller."""
        self.epoch = 0
        self.live_brokers: dict[int, LiveBroker] = {}
        self.shutting_down: set[int] = set()
        #: Assignments by topic and partition index; has every known topic.
        self.topics: dict[str, dict[int, PartitionAssignment]] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.topic_names: dict[bytes, str] = {}
        self.leaderships: dict[TopicPartition, PartitionLeadership] = {}
        self.reassigning: set[TopicPartition] = set()
        self.partition_phases.clear()
        self.replica_phases.clear()
        #: Replicas that a broker cannot read, by broker.
        self.offline_replicas: dict[int, set[TopicPartition]] = {}
        self.to_delete: set[str] = set()
        self.deletion_started: set[str] = set()
        #: Topics of `to_delete` whose deletion waits for a broker or a reassignment.
        self.ineligible_for_deletion: set[str] = set()

    # -- brokers -------------------------------------------------------------------------------

    def is_live(self, broker_id: int) -> bool:
        """True if the broker is registered and not in controlled shutdown."""
        return broker_id in self.live_brokers and broker_id not in self.shutting_down

    def live_ids(self) -> list[int]:
        """Return the sorted ids of registered brokers, also of those in controlled shutdown."""
        return sorted(self.live_brokers)

    def is_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """True if a partition's replica may lead.

        Its broker must be live and its log directory readable.
        """
        return self.is_live(broker_id) and self._is_readable(broker_id, partition)

    def is_online_or_stopping(self, broker_id: int, partition: TopicPartition) -> bool:
        """True if the replica's broker is registered and its log directory readable.

        A broker in controlled shutdown counts as online here.
        """
        return broker_id in self.live_brokers and self._is_readable(broker_id, partition)

    def _is_readable(self, broker_id: int, partition: TopicPartition) -> bool:
        """True unless the broker has reported the replica's log directory as offline."""
        return partition not in self.offline_replicas.get(broker_id, ())

    # -- topics --------------------------------------------------------------------------------

    def assignment(self, partition: TopicPartition) -> PartitionAssignment:
        """Return a partition's replicas, adding and removing ones.

        All are empty for an unknown partition.
        """
        return self.topics.get(partition.topic, {}).get(partition.partition, _NOTHING)

    def assign(self, partition: TopicPartition, assignment: PartitionAssignment) -> None:
        """Set a partition's replicas, adding and removing ones."""
        self.topics.setdefault(partition.topic, {})[partition.partition] = assignment

    def name_topic(self, topic: str, topic_id: bytes) -> None:
        """Store a topic's id, so that it is found by name and the name by id."""
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    def remove_topic(self, topic: str) -> None:
        """Remove a deleted topic and all state about it."""
        self.to_delete.discard(topic)
        self.deletion_started.discard(topic)
        self.ineligible_for_deletion.discard(topic)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for index, assignment in self.topics.pop(topic, {}).items():
            partition = TopicPartition(topic, index)
            self.leaderships.pop(partition, None)
            self.partition_phases.pop(partition, None)
            self.reassigning.discard(partition)
            for broker_id in assignment.replicas:
                self.replica_phases.pop(Replica(partition, broker_id), None)
            for offline in self.offline_replicas.values():
                offline.discard(partition)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions, topic by topic."""
        return [partition for topic in self.topics for partition in self.partitions_of(topic)]

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic."""
        return [TopicPartition(topic, index) for index in self.topics.get(topic, {})]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """Return all replicas of partitions, each with its broker, partition by partition."""
        return [
            Replica(partition, broker_id)
            for partition in partitions
            for broker_id in self.assignment(partition).replicas
        ]

    def replicas_on(self, broker_ids: Iterable[int]) -> list[Replica]:
        """Return the replicas that are assigned to any of `broker_ids`."""
        wanted = frozenset(broker_ids)
        return [r for r in self.replicas_of(self.partitions()) if r.broker_id in wanted]

    # -- leaders -------------------------------------------------------------------------------

    def epoch_for_stop(self, partition: TopicPartition) -> int:
        """Return the leader epoch that StopReplica has for a partition.

        It is −2 for a topic to delete, −1 for a partition without a leader.
        """
        if partition.topic in self.to_delete:
            return DELETED
        leadership = self.leaderships.get(partition)
        return _NO_EPOCH if leadership is None else leadership.state.leader_epoch

    def partitions_with_leadership(self) -> list[TopicPartition]:
        """Return the partitions that ever had a leader, except those of topics being deleted."""
        being_deleted = self.topics_being_deleted()
        return [p for p in self.leaderships if p.topic not in being_deleted]

    def is_being_deleted(self, topic: str) -> bool:
        """Return True if a topic is to be deleted and none of its partitions is being reassigned.

        During a reassignment the topic's leaders are still elected, and its followers still fetch:
        the reassignment needs both to complete, and the deletion follows it.

        Differs: Kafka elects no leader for such a topic. Its reassignment ends only when the topic
        is deleted, once a broker with a replica starts.
        """
        return topic in self.to_delete and all(
            partition.topic != topic for partition in self.reassigning
        )

    def topics_being_deleted(self) -> set[str]:
        """Return the topics whose deletion is requested and waits for no reassignment."""
        return self.to_delete - {partition.topic for partition in self.reassigning}

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Return the partitions whose leader is offline, except those of topics being deleted."""
        being_deleted = self.topics_being_deleted()
        return [
            partition
            for partition, (state, _) in self.leaderships.items()
            if partition.topic not in being_deleted and not self.is_online(state.leader, partition)
        ]

    def partitions_waiting_for_leader(self) -> list[TopicPartition]:
        """Return the partitions in phase NEW or OFFLINE, except those of topics being deleted."""
        being_deleted = self.topics_being_deleted()
        waiting = (PartitionPhase.NEW, PartitionPhase.OFFLINE)
        return [
            partition
            for partition, phase in self.partition_phases.items()
            if phase in waiting and partition.topic not in being_deleted
        ]

    def offline_partition_count(self) -> int:
        """Return the number of partitions in phase OFFLINE, without topics being deleted."""
        return sum(
            phase is PartitionPhase.OFFLINE and partition.topic not in self.deletion_started
            for partition, phase in self.partition_phases.items()
        )

    # -- deletion ------------------------------------------------------------------------------

    def replicas_in_phase(self, topic: str, phase: ReplicaPhase) -> list[Replica]:
        """Return the replicas of a topic that are in a phase."""
        return [
            replica
            for replica in self.replicas_of(self.partitions_of(topic))
            if self.replica_phases.get(replica) is phase
        ]

    def topics_with_offline_replicas(self, topics: Iterable[str]) -> set[str]:
        """Return the topics of `topics` that have at least one offline replica."""
        return {
            topic
            for topic in topics
            if any(
                not self.is_online(replica.broker_id, replica.partition)
                for replica in self.replicas_of(self.partitions_of(topic))
            )
        }

    def load_leaderships(self, leaderships: Mapping[TopicPartition, PartitionLeadership]) -> None:
        """Store leaders and ISRs that were read from the znodes."""
        self.leaderships.update(leaderships)

    def partitions_led_by(self, broker_id: int) -> list[TopicPartition]:
        """Return the partitions with more than one replica that a broker leads.

        Topics to delete are left out.
        """
        return [
            partition
            for partition, (state, _) in self.leaderships.items()
            if state.leader == broker_id != NO_LEADER
            and partition.topic not in self.to_delete
            and len(self.assignment(partition).replicas) > 1
        ]
