"""What one broker knows of the cluster: brokers, topics, leaders; as the controller last said.

The controller tells it by UpdateMetadata (PART-12); responses to clients are built from it. It
may be behind the metadata store, and every broker has its own. `version` rises with each change, so
that a response that was built once can be kept until then.

Source: PART-12; Kafka's ZkMetadataCache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from engine.model import TopicPartition

_NO_LEADER = -1


class Endpoint(NamedTuple):
    """Where a broker is reached by one listener; the protocol is Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerNode(NamedTuple):
    """A broker that is up."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return where it is reached by a listener, None if it has no such one."""
        return next(
            (endpoint for endpoint in self.endpoints if endpoint.listener == listener), None
        )


class PartitionMetadata(NamedTuple):
    """A partition as the controller last told it; `leader_id` is −1 without a leader."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    controller_epoch: int = 0


class MetadataCache:
    """Brokers and topics by name and id; changed by `update` alone."""

    def __init__(self, broker_id: int, cluster_id: str) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.controller_id: int | None = None
        #: This broker as it will be registered, from when it listens on.
        self.own: BrokerNode | None = None
        #: Rises with each update.
        self.version = 0
        self._brokers: Mapping[int, BrokerNode] = {}
        self._topics: dict[str, dict[int, PartitionMetadata]] = {}
        self._id_of: dict[str, bytes] = {}
        self._name_of: dict[bytes, str] = {}
        self._listeners: list[Callable[[frozenset[str]], None]] = []

    # Reading

    @property
    def brokers(self) -> Mapping[int, BrokerNode]:
        """Return the brokers that are up, by id."""
        return self._brokers

    def brokers_to_tell(self) -> Collection[BrokerNode]:
        """Return the brokers that clients are told of: this one while no controller told of any.

        Differs: Kafka tells of none then. librdkafka gives up the connection to a broker that is
        not told of; after a restart of the only one it knows that is the last, and what it has to
        send waits for minutes (`metadata.recovery.rebootstrap.trigger.ms`).
        """
        if self._brokers or self.own is None:
            return self._brokers.values()
        return (self.own,)

    @property
    def topics(self) -> Mapping[str, Mapping[int, PartitionMetadata]]:
        """Return the partitions of each topic by index."""
        return self._topics

    @property
    def topic_ids(self) -> Mapping[str, bytes]:
        """Return the 16-byte id of each topic that has one, by name."""
        return self._id_of

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the topic with an id."""
        return self._name_of.get(topic_id)

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return one partition, None if it is not known."""
        partitions = self._topics.get(topic_partition.topic)
        return None if partitions is None else partitions.get(topic_partition.partition)

    def is_known(self, topic_partition: TopicPartition) -> bool:
        """Tell whether some broker has the partition."""
        return self.partition(topic_partition) is not None

    def is_alive(self, broker_id: int) -> bool:
        """Tell whether a broker is up."""
        return broker_id in self._brokers

    def leader_count(self) -> int:
        """Count the partitions that have a leader."""
        return sum(
            partition.leader_id != _NO_LEADER
            for partitions in self._topics.values()
            for partition in partitions.values()
        )

    # Changing

    def on_update(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Run after each update with the topics it is about: requests may wait for them."""
        self._listeners.append(listener)

    def update(
        self,
        controller_id: int | None,
        brokers: Iterable[BrokerNode],
        partitions: Mapping[TopicPartition, PartitionMetadata | None],
        topic_ids: Mapping[str, bytes],
        *,
        is_full: bool = False,
    ) -> list[TopicPartition]:
        """Take what the controller said; None stands for a partition that is being deleted.

        All brokers that are up are told each time, of partitions and ids only those that changed,
        unless `is_full`: then what is not told of is gone. Returns the partitions that are gone.

        Differs: what has an older epoch than is known of the same topic is passed over. A request
        that was sent again may arrive a second time, behind later ones; Kafka believes it.
        """
        if is_full:
            known = (TopicPartition(name, at) for name, by in self._topics.items() for at in by)
            partitions = {**dict.fromkeys(known), **partitions}
        partitions = {
            topic_partition: partition
            for topic_partition, partition in partitions.items()
            if partition is None or not self._is_late(topic_partition, partition, topic_ids)
        }
        self.controller_id = controller_id
        self._brokers = {broker.broker_id: broker for broker in brokers}
        for topic, topic_id in topic_ids.items():
            self._name_of.pop(self._id_of.get(topic, b""), None)
            self._id_of[topic] = topic_id
            self._name_of[topic_id] = topic
        gone = []
        for topic_partition, partition in partitions.items():
            if partition is not None:
                by_index = self._topics.setdefault(topic_partition.topic, {})
                by_index[topic_partition.partition] = partition
            elif self._forget(topic_partition):
                gone.append(topic_partition)
        self.version += 1
        topics = frozenset(topic_partition.topic for topic_partition in partitions)
        for listener in self._listeners:
            listener(topics)
        return gone

    def _is_late(
        self,
        topic_partition: TopicPartition,
        partition: PartitionMetadata,
        topic_ids: Mapping[str, bytes],
    ) -> bool:
        known = self.partition(topic_partition)
        topic_id = topic_ids.get(topic_partition.topic)
        if known is None or topic_id is None or topic_id != self._id_of.get(topic_partition.topic):
            return False
        epochs = partition.leader_epoch, partition.partition_epoch
        return epochs < (known.leader_epoch, known.partition_epoch)

    def _forget(self, topic_partition: TopicPartition) -> bool:
        partitions = self._topics.get(topic_partition.topic, {})
        if partitions.pop(topic_partition.partition, None) is None:
            return False
        if not partitions:
            del self._topics[topic_partition.topic]
            topic_id = self._id_of.pop(topic_partition.topic, None)
            if topic_id is not None:
                self._name_of.pop(topic_id, None)
        return True
