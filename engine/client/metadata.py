"""Decode a Metadata response: brokers, topics, leaders, the controller."""

from __future__ import annotations

from typing import NamedTuple

from engine.client.settings import Address
from engine.errors import ApiError, api_error
from engine.kafka_errors import (
    LEADER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    kafka_error,
)
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.layout import NO_UUID

NO_BROKER = -1


class BrokerView(NamedTuple):
    """One live broker."""

    broker_id: int
    address: Address
    rack: str | None = None


class PartitionView(NamedTuple):
    """The metadata of one partition; `leader` is −1 without a leader.

    `adding` are the replicas that an ongoing reassignment adds; `request_moves` sets them, as
    Metadata responses do not have them.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error_code: int = NONE
    adding: tuple[int, ...] = ()

    @property
    def is_under_replicated(self) -> bool:
        """True if the ISR is smaller than the number of replicas without those being added.

        Source: the count of kafka.admin.TopicCommand for a partition that is reassigned.
        """
        return len(self.isr) < len(self.replicas) - len(self.adding)

    @property
    def has_leader(self) -> bool:
        """True if the partition has a leader, so that clients can read and write it."""
        return self.leader != NO_BROKER


class TopicView(NamedTuple):
    """One topic, its partitions in order; with an error code there are none."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionView, ...]
    error_code: int = NONE

    @property
    def has_id(self) -> bool:
        """True if the topic has an id in the metadata: brokers return ids from 2.8 on."""
        return self.topic_id != NO_UUID

    @property
    def replication_factor(self) -> int:
        """Return the number of replicas of partition 0, which Kafka's tools show for the topic.

        0 if the metadata has no partition.
        """
        return len(self.partitions[0].replicas) if self.partitions else 0


class ClusterView(NamedTuple):
    """The cluster at one moment; only the topics that were requested."""

    cluster_id: str | None
    #: Where requests to the controller go; see `is_controller_known`.
    controller_id: int
    brokers: dict[int, BrokerView]
    topics: dict[str, TopicView]
    #: False in KRaft: brokers name any live broker, which forwards requests to the controller.
    is_controller_known: bool = True

    @property
    def known_controller_id(self) -> int | None:
        """Return the controller's broker id; None for KRaft, where metadata names any broker."""
        return self.controller_id if self.is_controller_known else None

    def partition(self, wanted: TopicPartition) -> PartitionView | None:
        """Return the view of a partition, None if the metadata lacks it."""
        topic = self.topics.get(wanted.topic)
        if topic is None:
            return None
        # Partitions are numbered from 0, but one may be missing from a response.
        if wanted.partition < len(topic.partitions):
            partition = topic.partitions[wanted.partition]
            if partition.partition == wanted.partition:
                return partition
        return next((p for p in topic.partitions if p.partition == wanted.partition), None)


def cluster_view(response: messages.MetadataResponse, *, is_of_kraft: bool = False) -> ClusterView:
    """Convert a Metadata response of any version from 1 on; brokers are by id, topics by name.

    With `is_of_kraft` the controller id in the response is not that of the controller.

    Source: KRaftMetadataCache.getControllerId of 3.9.1, which returns any broker that is alive.
    """
    brokers = {
        row.node_id: BrokerView(row.node_id, Address(row.host, row.port), row.rack)
        for row in response.brokers
    }
    # Topics are requested by name, so that a row without a name belongs to none of them.
    topics = {
        row.name: _topic_view(row.name, row) for row in response.topics if row.name is not None
    }
    return ClusterView(
        response.cluster_id,
        response.controller_id,
        brokers,
        topics,
        is_controller_known=not is_of_kraft,
    )


def _topic_view(name: str, row: messages.MetadataResponse.MetadataResponseTopic) -> TopicView:
    """Convert a topic's row of a Metadata response; its partitions are sorted by number."""
    partitions = sorted((_partition_view(p) for p in row.partitions), key=lambda p: p.partition)
    return TopicView(name, row.topic_id, row.is_internal, tuple(partitions), row.error_code)


def _partition_view(row: messages.MetadataResponse.MetadataResponsePartition) -> PartitionView:
    """Return the view of one partition of a Metadata response, with its error code."""
    return PartitionView(
        row.partition_index,
        row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
        row.error_code,
    )


def metadata_request(topics: list[str] | None) -> messages.MetadataRequest:
    """Return a Metadata request for topics by name; it creates none of them.

    None requests all topics, an empty list only the brokers.
    """
    request = messages.MetadataRequest
    rows = None
    if topics is not None:
        rows = [request.MetadataRequestTopic(name=name) for name in topics]
    return request(topics=rows, allow_auto_topic_creation=False)


def topic_failure(view: ClusterView, name: str) -> ApiError | None:
    """Return the error for which a topic cannot be used, by its metadata; None if it can be used.

    A topic that the metadata lacks has UNKNOWN_TOPIC_OR_PARTITION.
    """
    topic = view.topics.get(name)
    code = UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
    if code == NONE:
        return None
    return api_error(code, f"{name}: {kafka_error(code).meaning}")


def leader_of(view: ClusterView, wanted: TopicPartition) -> int | ApiError:
    """Return the broker id of a partition's leader, or the error for which it has none.

    The error is UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE or that of the topic.
    """
    failure = topic_failure(view, wanted.topic)
    if failure is not None:
        return failure
    partition = view.partition(wanted)
    if partition is None:
        count = len(view.topics[wanted.topic].partitions)
        return api_error(
            UNKNOWN_TOPIC_OR_PARTITION,
            f"no partition {wanted.partition}: {wanted.topic} has {count}, from 0 to {count - 1}",
        )
    if partition.leader == NO_BROKER or partition.leader not in view.brokers:
        return api_error(LEADER_NOT_AVAILABLE, f"{wanted} has no leader now")
    return partition.leader
