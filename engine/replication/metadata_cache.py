"""A broker's metadata cache: brokers, topics and leaders from the controller's UpdateMetadata.

Responses to clients are built from it (PART-12). It may be older than the metadata store. `version`
rises with each change, so that a response can be cached until the next change.

An update of thousands of partitions is prepared over several turns of the loop (`StagedUpdate`) and
applied in one turn: a reader sees the complete update or nothing of it.

Source: PART-12; Kafka's ZkMetadataCache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from engine.hash_order import (
    immutable_set_hash,
    in_any_ref_map_order,
    in_java_hash_order,
    numbers_in_long_map_order,
)
from engine.host.each import do_each
from engine.model import TopicPartition
from engine.replication.partition_orders import PartitionOrders

_NO_PARTITIONS: Mapping[int, object] = {}
_NO_LEADER = -1
_ORDERED_TOPICS_MAX = 8


class Endpoint(NamedTuple):
    """The address of a broker's listener; `security_protocol` is Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerNode(NamedTuple):
    """A live broker with its endpoints and rack."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the broker's endpoint at a listener, None if it does not have that listener."""
        return next(
            (endpoint for endpoint in self.endpoints if endpoint.listener == listener), None
        )


class PartitionMetadata(NamedTuple):
    """A partition in the controller's last update; `leader_id` is −1 without a leader."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    controller_epoch: int = 0


class MetadataCache:
    """Brokers, and topics by name and id; only `update` and `commit` change it."""

    def __init__(self, broker_id: int, cluster_id: str) -> None:
        """Create the cache of a broker that knows no cluster metadata yet."""
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        #: Broker id of the controller, None if it is unknown.
        self.controller_id: int | None = None
        #: This broker's own endpoints; None until its listeners are open. Sent to clients until the
        #: first update with brokers.
        self.own: BrokerNode | None = None
        #: Rises with each update: cached responses of an earlier version are outdated.
        self.version = 0
        self._brokers: Mapping[int, BrokerNode] = {}
        self._topics: dict[str, dict[int, PartitionMetadata]] = {}
        #: Topic ids by name, and the reverse.
        self._id_of: dict[str, bytes] = {}
        self._name_of: dict[bytes, str] = {}
        #: Called with the names of the topics in each update.
        self._listeners: list[Callable[[frozenset[str]], None]] = []
        #: Order of each topic's partitions in responses, as Kafka's hash maps have it.
        self._orders = PartitionOrders()

    # Reading

    @property
    def brokers(self) -> Mapping[int, BrokerNode]:
        """Return the live brokers by id, in the order of Kafka's map.

        Source: ZkMetadataCache.updateMetadata.
        """
        return self._brokers

    def brokers_to_notify(self) -> Collection[BrokerNode]:
        """Return the brokers for responses to clients; this broker alone before the first update.

        Differs: Kafka returns none then. librdkafka closes the connection to a broker that is
        not listed; after a restart of the only broker it knows, its unsent records wait for
        minutes (`metadata.recovery.rebootstrap.trigger.ms`).
        """
        if self._brokers or self.own is None:
            return self._brokers.values()
        return (self.own,)

    @property
    def topics(self) -> Mapping[str, Mapping[int, PartitionMetadata]]:
        """Return the partitions of each topic by index.

        Few topics are in the order of Kafka's map.
        """
        return self._topics

    def partition_order(self, topic: str) -> list[int]:
        """Return the partition indexes of a topic in the order of Kafka's map."""
        return self._orders.order_partitions(topic, self._topics.get(topic, ()))

    @property
    def topic_ids(self) -> Mapping[str, bytes]:
        """Return the 16-byte id of each topic that has one, by name."""
        return self._id_of

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id, None for an unknown id."""
        return self._name_of.get(topic_id)

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """Return the metadata of a partition, None if it is unknown."""
        partitions = self._topics.get(topic_partition.topic)
        return None if partitions is None else partitions.get(topic_partition.partition)

    def is_known(self, topic_partition: TopicPartition) -> bool:
        """True if the cache has the partition: it exists in the cluster."""
        topic, index = topic_partition
        return index in self._topics.get(topic, _NO_PARTITIONS)

    def is_alive(self, broker_id: int) -> bool:
        """True if the cache has the broker: it is registered."""
        return broker_id in self._brokers

    def leader_count(self) -> int:
        """Return the number of partitions with a leader."""
        return sum(
            partition.leader_id != _NO_LEADER
            for partitions in self._topics.values()
            for partition in partitions.values()
        )

    # Changing

    def on_update(self, listener: Callable[[frozenset[str]], None]) -> None:
        """Call `listener` after each update with the names of the topics in it."""
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
        """Apply the controller's UpdateMetadata in one turn of the loop.

        Returns the deleted partitions. An update has all live brokers, but only the partitions and
        topic ids that changed; None as a partition's metadata means that it is deleted. With
        `is_full` all partitions that the update lacks are deleted too.

        Differs: a partition with an older epoch than the cached one of the same topic id is
        ignored. A request that was sent twice may arrive again after later ones; Kafka applies it.
        """
        staged = StagedUpdate(self, topic_ids)
        deque(staged.stage_all(partitions, is_full=is_full), maxlen=0)
        return self.commit(controller_id, brokers, staged)

    def commit(
        self, controller_id: int | None, brokers: Iterable[BrokerNode], staged: StagedUpdate
    ) -> list[TopicPartition]:
        """Apply a staged update to the cache in one turn, and call the listeners; see `update`."""
        self.controller_id = controller_id
        by_id = {broker.broker_id: broker for broker in brokers}
        order = numbers_in_long_map_order(by_id, len(self._brokers))
        self._brokers = {broker_id: by_id[broker_id] for broker_id in order}
        for topic, topic_id in staged.topic_ids.items():
            self._name_of.pop(self._id_of.get(topic, b""), None)
            self._id_of[topic] = topic_id
            self._name_of[topic_id] = topic
        topic_count, added = len(self._topics), []
        for topic, partitions in staged.topics.items():
            if not partitions:
                self._remove_topic(topic)
                continue
            if topic not in self._topics:
                added.append(topic)
            self._topics[topic] = partitions
        if staged.partition_count and len(self._topics) <= _ORDERED_TOPICS_MAX:
            # With more topics the order of Kafka's responses comes from another kind of map.
            known = [topic for topic in self._topics if topic not in added]
            in_map = in_any_ref_map_order(known + in_java_hash_order(added), topic_count)
            self._topics = {topic: self._topics[topic] for topic in in_map}
        self._orders.record_update(staged.added, staged.partition_count)
        self.version += 1
        topics = frozenset(staged.topics)
        do_each(self._listeners, lambda listener: listener(topics))
        return staged.gone

    def _remove_topic(self, topic: str) -> None:
        """Remove a deleted topic and its id; an update may have an id of an unknown topic."""
        self._orders.forget(topic)
        self._topics.pop(topic, None)
        topic_id = self._id_of.pop(topic, None)
        if topic_id is not None:
            self._name_of.pop(topic_id, None)


class StagedUpdate:
    """The topics after an update, prepared without a change of the cache.

    It copies from the cache: no other update may be committed between its creation and `commit`.
    """

    def __init__(self, cache: MetadataCache, topic_ids: Mapping[str, bytes]) -> None:
        """Create an update that is not applied yet, without topics.

        `topic_ids` are the ids in the update, by name.
        """
        self._cache = cache
        self.topic_ids = topic_ids
        #: All partitions of each topic in the update; a topic without partitions is deleted.
        self.topics: dict[str, dict[int, PartitionMetadata]] = {}
        #: Partitions that the update deletes.
        self.gone: list[TopicPartition] = []
        #: Indexes of the partitions that the update adds, by topic.
        self.added: dict[str, list[int]] = {}
        #: Number of partitions in the update.
        self.partition_count = 0

    def stage_all(
        self, partitions: Mapping[TopicPartition, PartitionMetadata | None], *, is_full: bool
    ) -> Iterator[None]:
        """Stage one partition per step, so that a large update can be spread over turns.

        With `is_full`, cached partitions that the update lacks are staged as deleted.
        """
        self.partition_count = len(partitions)
        if is_full:
            for topic, known in list(self._cache.topics.items()):
                for index in known:
                    topic_partition = TopicPartition(topic, index)
                    if topic_partition not in partitions:
                        self._stage(topic_partition, None)
                    yield
        for topic_partition, partition in partitions.items():
            if partition is None or not self._is_outdated(topic_partition, partition):
                self._stage(topic_partition, partition)
            yield

    def _stage(self, topic_partition: TopicPartition, partition: PartitionMetadata | None) -> None:
        """Stage a partition in a copy of its topic; `partition` None deletes it."""
        topic, index = topic_partition
        staged = self.topics.get(topic)
        if staged is None:
            # Computed here, because a large update has several turns: responses use this order.
            immutable_set_hash(topic)
            # Readers may be iterating over the dict in the cache.
            staged = self.topics[topic] = dict(self._cache.topics.get(topic, {}))
        if partition is not None:
            if index not in staged:
                self.added.setdefault(topic, []).append(index)
            staged[index] = partition
        elif staged.pop(index, None) is not None:
            self.gone.append(topic_partition)

    def _is_outdated(self, topic_partition: TopicPartition, partition: PartitionMetadata) -> bool:
        """True if a partition has older epochs than the cached ones of the same topic id.

        A delayed or repeated UpdateMetadata must not undo a later one.
        """
        cache, topic = self._cache, topic_partition.topic
        known, topic_id = cache.partition(topic_partition), self.topic_ids.get(topic)
        if known is None or topic_id is None or topic_id != cache.topic_ids.get(topic):
            return False
        epochs = partition.leader_epoch, partition.partition_epoch
        return epochs < (known.leader_epoch, known.partition_epoch)
