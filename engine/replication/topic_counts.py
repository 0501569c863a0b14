"""Counters of the traffic of each topic in a broker; other modules compute rates from them.

| count | counted |
|---|---|
| produces | each partition of a produce request, refused or not |
| messages_in, bytes_in | appended records in the form that was sent; a duplicate counts again |
| bytes_rejected | batches above max.message.bytes |
| failed_produces | refusals, except errors in `ERRORS_NOT_FAILURES` |
| produce_conversions | records that were appended in another codec or format |
| fetch_conversions | records in responses to consumers of an older format |
| fetches | each partition of a fetch request |
| bytes_out | records in responses to consumers |
| replication_bytes_out, replication_bytes_in | records to followers, and from leaders |
| reassignment_bytes_out, reassignment_bytes_in | the part of them for replicas being added |

Each partition has a reference to the counts of its topic: an append is counted by one addition to
an attribute, or two if it has several records.

Source: BrokerTopicMetrics of 3.9.1, and ReplicaManager, UnifiedLog and KafkaApis that mark them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.errors import ApiError
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_TOPIC_ID,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    RECORD_LIST_TOO_LARGE,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.log.validation import InvalidHeader, RecordsRefused

#: Errors of an append that are not failures; their results have no log start offset.
ERRORS_NOT_FAILURES: Final = frozenset(
    (
        CORRUPT_MESSAGE,
        UNKNOWN_TOPIC_OR_PARTITION,
        NOT_LEADER_OR_FOLLOWER,
        MESSAGE_TOO_LARGE,
        INVALID_TOPIC_EXCEPTION,
        RECORD_LIST_TOO_LARGE,
        KAFKA_STORAGE_ERROR,
    )
)

#: Errors of a read that are not failures.
_READ_ERRORS_NOT_FAILURES: Final = frozenset(
    (
        OFFSET_OUT_OF_RANGE,
        UNKNOWN_TOPIC_OR_PARTITION,
        NOT_LEADER_OR_FOLLOWER,
        REPLICA_NOT_AVAILABLE,
        KAFKA_STORAGE_ERROR,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        INCONSISTENT_TOPIC_ID,
    )
)

#: The unit of one append or read; more than all bytes between two folds, which are seconds apart.
ONE: Final = 1 << 50

COUNT_NAMES: Final = (
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "failed_fetches",
    "failed_produces",
    "fetch_conversions",
    "fetches",
    "invalid_checksums",
    "invalid_magics",
    "invalid_offsets",
    "messages_in",
    "missing_keys",
    "produce_conversions",
    "produces",
    "reassignment_bytes_in",
    "reassignment_bytes_out",
    "replication_bytes_in",
    "replication_bytes_out",
)


class TopicCounts:
    """The counts of one topic since it came to this broker; see the module's table."""

    __slots__ = (*COUNT_NAMES, "fast_appends", "fast_offset_steps", "fast_reads")

    bytes_in: int
    bytes_out: int
    bytes_rejected: int
    failed_fetches: int
    failed_produces: int
    fetch_conversions: int
    fetches: int
    invalid_checksums: int
    invalid_magics: int
    invalid_offsets: int
    messages_in: int
    missing_keys: int
    produce_conversions: int
    produces: int
    reassignment_bytes_in: int
    reassignment_bytes_out: int
    replication_bytes_in: int
    replication_bytes_out: int

    def __init__(self) -> None:
        """Create the counts of a topic's produces and fetches, all 0."""
        for name in COUNT_NAMES:
            setattr(self, name, 0)
        #: Appends and reads on the fast paths: an integer with the sum of their bytes, plus ONE for
        #: each. `add_pending_counts` adds them to the general counts.
        self.fast_appends = 0
        self.fast_reads = 0
        #: Sum of last minus first offset over these appends: the records minus one of each batch.
        self.fast_offset_steps = 0

    def add_pending_counts(self) -> None:
        """Add the counts of the fast paths to the general counts, and reset them."""
        append_count, bytes_in = divmod(self.fast_appends, ONE)
        fetch_count, bytes_out = divmod(self.fast_reads, ONE)
        self.produces += append_count
        self.messages_in += append_count + self.fast_offset_steps
        self.bytes_in += bytes_in
        self.fetches += fetch_count
        self.bytes_out += bytes_out
        self.fast_appends = self.fast_reads = self.fast_offset_steps = 0

    def count_refusal(self, error: ApiError, size_bytes: int) -> None:
        """Count a refused batch of `size_bytes`, by the kind of its error.

        Source: ReplicaManager.appendToLocalLog.
        """
        if error.code not in ERRORS_NOT_FAILURES:
            self.failed_produces += 1
        if error.code == MESSAGE_TOO_LARGE:
            self.bytes_rejected += size_bytes
        elif error.code == CORRUPT_MESSAGE:
            self.invalid_checksums += 1
        elif isinstance(error, InvalidHeader):
            self.invalid_offsets += 1
        elif isinstance(error, RecordsRefused):
            self.missing_keys += error.missing_keys
            self.invalid_magics += error.invalid_magics

    def note_read_error(self, error: ApiError) -> None:
        """Count the error of a read, unless it is one that Kafka does not count as a failure.

        Source: ReplicaManager.readFromLog.
        """
        if error.code not in _READ_ERRORS_NOT_FAILURES:
            self.failed_fetches += 1


class BrokerTopicCounts:
    """The counts of all topics of a broker, by topic."""

    def __init__(self) -> None:
        self.by_topic: dict[str, TopicCounts] = {}
        #: Sums of counts that were reset or whose topics were removed.
        self.former = TopicCounts()

    def counts_of(self, topic: str) -> TopicCounts:
        """Return the counts of a topic, created at its first use.

        Those of the fast paths are in it only after `add_pending_counts`.
        """
        counts = self.by_topic.get(topic)
        if counts is None:
            counts = self.by_topic[topic] = TopicCounts()
        return counts

    def reset_counts(self, topic: str, names: Iterable[str]) -> None:
        """Set the counts `names` of a topic to 0; `total` does not change."""
        counts, former = self.counts_of(topic), self.former
        counts.add_pending_counts()
        for name in names:
            setattr(former, name, getattr(former, name) + getattr(counts, name))
            setattr(counts, name, 0)

    def total(self, name: str) -> int:
        """Return the sum of a count over all topics since the broker started."""
        here: int = getattr(self.former, name)
        for counts in self.by_topic.values():
            counts.add_pending_counts()
            here += getattr(counts, name)
        return here
