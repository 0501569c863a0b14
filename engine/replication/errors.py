"""The exceptions about partitions, with Kafka's error codes.

Source: Kafka's Errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.errors import ApiError, CorruptRecord, StorageError
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_TOPIC_ID,
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    POLICY_VIOLATION,
    REQUEST_TIMED_OUT,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition


class UnknownTopicOrPartition(ApiError):
    """No replica of the requested partition is on this broker."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__(UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} is not on this broker")
        self.topic_partition = topic_partition


class NotLeaderOrFollower(ApiError):
    """The broker does not lead the partition, or the requesting replica is not assigned."""

    def __init__(self, topic_partition: TopicPartition, reason: str) -> None:
        super().__init__(NOT_LEADER_OR_FOLLOWER, f"{topic_partition}: {reason}")
        self.topic_partition = topic_partition


class RequestTimedOut(ApiError):
    """The in-sync replicas did not have the records in time; they may still get them."""

    def __init__(self, topic_partition: TopicPartition, required_offset: int) -> None:
        super().__init__(
            REQUEST_TIMED_OUT,
            f"{topic_partition}: the in-sync replicas did not reach {required_offset} in time",
        )
        self.topic_partition = topic_partition
        self.required_offset = required_offset


class InvalidTopic(ApiError):
    """A client wrote to an internal topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
        self.topic = topic


class NotEnoughReplicas(ApiError):
    """The ISR is smaller than `min.insync.replicas`: a write with acks=all is refused."""

    def __init__(
        self, topic_partition: TopicPartition, isr: Iterable[int], min_isr_count: int
    ) -> None:
        """Create the error of acks=-1 before an append.

        `min_isr_count` is min.insync.replicas, at most the number of assigned replicas.
        """
        self.isr = tuple(isr)
        super().__init__(
            NOT_ENOUGH_REPLICAS,
            f"{topic_partition}: {len(self.isr)} replicas in sync, {min_isr_count} are needed",
        )
        self.topic_partition = topic_partition
        self.min_isr_count = min_isr_count


class NotEnoughReplicasAfterAppend(ApiError):
    """The ISR became smaller than `min.insync.replicas` after the records were written."""

    def __init__(self, topic_partition: TopicPartition, isr_count: int, min_isr_count: int) -> None:
        """Create the error of acks=-1 after an append, which remains in the log.

        `min_isr_count` is min.insync.replicas, at most the number of assigned replicas.
        """
        super().__init__(
            NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            f"{topic_partition}: {isr_count} replicas in sync, {min_isr_count} are needed",
        )
        self.topic_partition = topic_partition
        self.isr_count = isr_count
        self.min_isr_count = min_isr_count


class InvalidRequiredAcks(ApiError):
    """A producer sent acks other than −1, 0 and 1."""

    def __init__(self, required_acks: int) -> None:
        super().__init__(INVALID_REQUIRED_ACKS, f"acks={required_acks}")
        self.required_acks = required_acks


class PolicyViolation(ApiError):
    """DeleteRecords for a topic without `delete` in cleanup.policy."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__(
            POLICY_VIOLATION, f"{topic_partition}: cleanup.policy does not have delete"
        )
        self.topic_partition = topic_partition


class ReadOnlyLog(ApiError):
    """A produce to a broker that serves copied logs read-only."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        super().__init__(
            POLICY_VIOLATION,
            f"{topic_partition} is served from a copied log and is read-only: the cluster was "
            "started without --writable",
        )
        self.topic_partition = topic_partition


class ReplicaStorageFailed(ApiError):
    """The files of the log cannot be read or written."""

    def __init__(self, topic_partition: TopicPartition, reason: str) -> None:
        super().__init__(KAFKA_STORAGE_ERROR, f"{topic_partition}: {reason}")
        self.topic_partition = topic_partition


class InconsistentTopicId(ApiError):
    """The log belongs to a topic of the same name with another id. Source: REPL-10."""

    def __init__(self, topic_partition: TopicPartition, logged: str, expected: str) -> None:
        """Create the error; both topic ids are strings."""
        super().__init__(
            INCONSISTENT_TOPIC_ID,
            f"the log of {topic_partition} is of the topic {logged}, not of {expected}",
        )
        self.topic_partition = topic_partition
        self.logged = logged
        self.expected = expected


class ReplicaRecordsCorrupt(ApiError):
    """The log is corrupt at the reader's offset."""

    def __init__(self, topic_partition: TopicPartition, reason: str) -> None:
        super().__init__(CORRUPT_MESSAGE, f"{topic_partition}: {reason}")
        self.topic_partition = topic_partition


class FencedLeaderEpoch(ApiError):
    """The client's leader epoch is older than this broker's."""

    def __init__(self, topic_partition: TopicPartition, requested: int, current: int) -> None:
        """Create the error of a client with an old leader epoch.

        `requested` is the client's leader epoch, `current` this broker's later one.
        """
        super().__init__(
            FENCED_LEADER_EPOCH,
            f"{topic_partition}: leader epoch {requested} was followed by {current}",
        )
        self.topic_partition = topic_partition
        self.requested = requested
        self.current = current


class UnknownLeaderEpoch(ApiError):
    """The client's leader epoch is newer than this broker's."""

    def __init__(
        self, topic_partition: TopicPartition, requested: int | None, current: int
    ) -> None:
        """Create the error; `requested` is the client's leader epoch, `current` this broker's."""
        super().__init__(
            UNKNOWN_LEADER_EPOCH,
            f"{topic_partition}: leader epoch {requested} is not known here, {current} is",
        )
        self.topic_partition = topic_partition
        self.requested = requested
        self.current = current


def not_assigned(
    partition: TopicPartition, replica_id: int, requested_epoch: int | None, leader_epoch: int
) -> ApiError:
    """Return the error for a fetch of a replica that is not assigned at the leader.

    A request with a leader epoch gets UNKNOWN_LEADER_EPOCH and retries: it may know an assignment
    that has not reached this broker yet.
    """
    if requested_epoch is not None:
        return UnknownLeaderEpoch(partition, requested_epoch, leader_epoch)
    return NotLeaderOrFollower(partition, f"replica {replica_id} is not assigned")


class OffsetNotAvailable(ApiError):
    """A new leader's high watermark has not reached the start of its epoch yet (HW-15)."""

    def __init__(
        self, topic_partition: TopicPartition, high_watermark: int, epoch_start_offset: int
    ) -> None:
        """Create the error of a new leader that does not know the committed end.

        Both offsets are exclusive.
        """
        super().__init__(
            OFFSET_NOT_AVAILABLE,
            f"{topic_partition}: high watermark {high_watermark} is below {epoch_start_offset}",
        )
        self.topic_partition = topic_partition
        self.high_watermark = high_watermark
        self.epoch_start_offset = epoch_start_offset


def to_api_error(topic_partition: TopicPartition, error: ApiError | StorageError) -> ApiError:
    """Return the error that a client gets for a failure of a partition.

    An ApiError is returned unchanged; a StorageError becomes the ApiError with Kafka's error code.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, CorruptRecord):
        return ReplicaRecordsCorrupt(topic_partition, str(error))
    return ReplicaStorageFailed(topic_partition, str(error))
