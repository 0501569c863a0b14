"""One broker's metadata of the cluster: brokers, topics, leaders; from the controller's updates.

The controller sends it by UpdateMetadata (PART-12); responses to clients are built from it. It
may be older than the metadata store, and every broker has one. `version` rises with each change, so
that a response that was built once can be kept until then.

An update of thousands of partitions is put together in several turns of the loop (`StagedUpdate`),
and put in place in one: a reader sees all of it or nothing.

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
    """Address of a broker's listener; the protocol is Kafka's number."""

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
        """Return the broker's endpoint of a listener, None if the broker lacks that listener."""
        return next(
            (endpoint for endpoint in self.endpoints if endpoint.listener == listener), None
        )


class PartitionMetadata(NamedTuple):
    """A partition as in the controller's last update; `leader_id` is −1 without a leader."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    controller_epoch: int = 0


class MetadataCache:
    """Brokers and topics by name and id; changed by `update` and `commit` alone."""

    def __init__(self, broker_id: int, cluster_id: str) -> None:
        """Begin without brokers and topics."""
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        #: None while no controller is known.
        self.controller_id: int | None = None
        #: This broker as it will be registered; None until its listeners are open. Shown as long as
        #: no update has named brokers.
        self.own: BrokerNode | None = None
        #: Rises with each update: responses that were built from an earlier one are outdated.
        self.version = 0
        self._brokers: Mapping[int, BrokerNode] = {}
        self._topics: dict[str, dict[int, PartitionMetadata]] = {}
        #: Topic ids by name, and the reverse.
        self._id_of: dict[str, bytes] = {}
        self._name_of: dict[bytes, str] = {}
        #: Called with the names of the topics that an update has changed.
        self._listeners: list[Callable[[frozenset[str]], None]] = []
        #: Order of each topic's partitions in responses, as Kafka's hash maps have it.
        self._orders = PartitionOrders()

    # Reading

    @property
    def brokers(self) -> Mapping[int, BrokerNode]:
        """Return the brokers that are up, by id, in the order of the map that Kafka keeps them in.

        Source: ZkMetadataCache.updateMetadata.
        """
        return self._brokers

    def brokers_to_notify(self) -> Collection[BrokerNode]:
        """Return the brokers for clients: this one while no controller has sent any.

        Differs: Kafka returns none then. librdkafka closes the connection to a broker that is
        not listed; after a restart of the only one it knows that is the last, and its unsent
        records wait for minutes (`metadata.recovery.rebootstrap.trigger.ms`).
        """
        if self._brokers or self.own is None:
            return self._brokers.values()
        return (self.own,)

    @property
    def topics(self) -> Mapping[str, Mapping[int, PartitionMetadata]]:
        """Return the partitions of each topic by index; few topics in the order of Kafka's map."""
        return self._topics

    def partition_order(self, topic: str) -> list[int]:
        """Return the partitions of a topic in the order of the map that Kafka keeps them in."""
        return self._orders.of(topic, self._topics.get(topic, ()))

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
        """Return whether some broker has the partition."""
        topic, index = topic_partition
        return index in self._topics.get(topic, _NO_PARTITIONS)

    def is_alive(self, broker_id: int) -> bool:
        """Return whether a broker is up."""
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
        """Apply the controller's UpdateMetadata in one turn of the loop.

        Returns the deleted partitions. An update has all live brokers, but only the partitions and
        topic ids that changed; None as a partition's metadata means that it is deleted. With
        `is_full` all partitions that the update lacks are deleted too.

        Differs: a partition with an older epoch than the cached one of the same topic id is
        ignored. A request that was sent twice may arrive again after later ones; Kafka applies it.
        """
        staged = StagedUpdate(self, topic_ids)
        deque(staged.take_all(partitions, is_full=is_full), maxlen=0)
        return self.commit(controller_id, brokers, staged)

    def commit(
        self, controller_id: int | None, brokers: Iterable[BrokerNode], staged: StagedUpdate
    ) -> list[TopicPartition]:
        """Replace the metadata by the staged update; see `update`."""
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
                self._forget(topic)
                continue
            if topic not in self._topics:
                added.append(topic)
            self._topics[topic] = partitions
        if staged.partition_count and len(self._topics) <= _ORDERED_TOPICS_MAX:
            # Of more topics Kafka's responses are in the order of another map.
            known = [topic for topic in self._topics if topic not in added]
            in_map = in_any_ref_map_order(known + in_java_hash_order(added), topic_count)
            self._topics = {topic: self._topics[topic] for topic in in_map}
        self._orders.update(staged.added, staged.partition_count)
        self.version += 1
        topics = frozenset(staged.topics)
        do_each(self._listeners, lambda listener: listener(topics))
        return staged.gone

    def _forget(self, topic: str) -> None:
        """Remove a deleted topic with its id, which an update names of an unknown topic, too."""
        self._orders.forget(topic)
        self._topics.pop(topic, None)
        topic_id = self._id_of.pop(topic, None)
        if topic_id is not None:
            self._name_of.pop(topic_id, None)


class StagedUpdate:
    """The topics after one update, built without a change of the readers' metadata.

    It is made of the cache as it is: no other update may be committed before this one is.
    """

    def __init__(self, cache: MetadataCache, topic_ids: Mapping[str, bytes]) -> None:
        """Begin without topics; `topic_ids` are those of the update, by name."""
        self._cache = cache
        self.topic_ids = topic_ids
        #: All partitions of each topic in the update; a topic without any is deleted.
        self.topics: dict[str, dict[int, PartitionMetadata]] = {}
        #: Partitions that were known before the update and are not after it.
        self.gone: list[TopicPartition] = []
        #: Indexes of partitions that were not known before, by topic.
        self.added: dict[str, list[int]] = {}
        #: How many partitions the update has.
        self.partition_count = 0

    def take_all(
        self, partitions: Mapping[TopicPartition, PartitionMetadata | None], *, is_full: bool
    ) -> Iterator[None]:
        """Stage one partition per step, so that the caller can spread a large update over turns.

        With `is_full` cached partitions that the update lacks are staged as deleted.
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
            if partition is None or not self._is_late(topic_partition, partition):
                self._stage(topic_partition, partition)
            yield

    def _stage(self, topic_partition: TopicPartition, partition: PartitionMetadata | None) -> None:
        """Stage a partition in a copy of its topic; None for `partition` deletes it."""
        topic, index = topic_partition
        staged = self.topics.get(topic)
        if staged is None:
            # Worked out here, where an update has several turns: responses are in its order.
            immutable_set_hash(topic)
            # Readers may be during the one that is known.
            staged = self.topics[topic] = dict(self._cache.topics.get(topic, {}))
        if partition is not None:
            if index not in staged:
                self.added.setdefault(topic, []).append(index)
            staged[index] = partition
        elif staged.pop(index, None) is not None:
            self.gone.append(topic_partition)

    def _is_late(self, topic_partition: TopicPartition, partition: PartitionMetadata) -> bool:
        """Return True for epochs older than the cached ones of the same topic id.

        A delayed or repeated UpdateMetadata must not undo a later one.
        """
        cache, topic = self._cache, topic_partition.topic
        known, topic_id = cache.partition(topic_partition), self.topic_ids.get(topic)
        if known is None or topic_id is None or topic_id != cache.topic_ids.get(topic):
            return False
        epochs = partition.leader_epoch, partition.partition_epoch
        return epochs < (known.leader_epoch, known.partition_epoch)
