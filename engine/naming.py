"""Parsing and building of names on disk: topics, partition directories, files of a partition.

```
partition directory          <topic>-<partition>
  to be deleted              <topic, truncated>-<partition>.<32 hex>-delete
  target of a move           <topic>-<partition>.<32 hex>-future
  not assigned to the broker <topic, truncated>-<partition>.<32 hex>-stray
file of a segment            <20 digits>.log .index .timeindex .txnindex .snapshot
KRaft snapshot               <20 digits>-<10 digits>.checkpoint
  being replaced             the same with the suffix .deleted .cleaned .swap
```

Any other name is rejected: foreign files in a directory are not taken for data, and every name is
validated here before it becomes part of a path.

Source: Kafka's LocalLog, LogFileUtils, Snapshots and Topic; `LOG-1`.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from engine.errors import ApiError, StorageError
from engine.java_text import java_string_hash
from engine.kafka_errors import INVALID_TOPIC_EXCEPTION
from engine.limits import (
    COORDINATOR_KEY_BYTES_MAX,
    DIRECTORY_NAME_CHARS_MAX,
    HASHED_KEY_CHARS_MAX,
    HASHED_KEYS_MAX,
    TOPIC_NAME_CHARS_MAX,
)
from engine.model import TopicPartition

#: File name of the metadata store of an embedded cluster, or in the log directory of a single
#: broker.
STORE_FILE = "znodes.sqlite"

_TOPIC_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_HEX_CHARS = frozenset("0123456789abcdef")
_DIGITS = frozenset("0123456789")
_UNIQUE_ID_CHARS = 32
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10
_UTF8_BYTES_MAX = 4
_OFFSET_MAX = (1 << 63) - 1
_INT_MAX = (1 << 31) - 1
_INT_MIN = -(1 << 31)

#: The coordinators' topics, for groups with their offsets and for transactional ids.
CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"

#: The internal topics, which brokers write.
INTERNAL_TOPICS = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"))

#: The client id with which Kafka's own admin tools may write to internal topics.
ADMIN_CLIENT_ID = "__admin_client"

#: The internal topics that are compacted regardless of a broker's defaults.
COMPACTED_TOPICS = frozenset((CONSUMER_OFFSETS, TRANSACTION_STATE))

#: The topic of the KRaft quorum; its directory is not a partition of clients.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"


class InvalidTopicName(ApiError):
    """Raised for a topic name that breaks Kafka's rules."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(INVALID_TOPIC_EXCEPTION, f"topic name {topic!r} {reason}")
        self.topic = topic
        self.reason = reason


class UnknownDirectoryName(StorageError):
    """Raised for a directory name that is not that of a partition."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"directory {name!r} is not a partition: {reason}")
        self.name = name
        self.reason = reason


class UnknownFileName(StorageError):
    """Raised for a file name that is not that of a segment's file."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"file {name!r} does not belong to a segment: {reason}")
        self.name = name
        self.reason = reason


class DirectoryKind(Enum):
    """The purpose of a partition directory; the value is the suffix of its name."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class FileKind(Enum):
    """The content of a segment's file; the value is its suffix."""

    LOG = ".log"
    INDEX = ".index"
    TIMEINDEX = ".timeindex"
    TXNINDEX = ".txnindex"
    SNAPSHOT = ".snapshot"
    CHECKPOINT = ".checkpoint"


class FileState(Enum):
    """The state of a file while segments are replaced; the value is the additional suffix."""

    LIVE = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"


class PartitionDirectory(NamedTuple):
    """The parts of a partition directory's name.

    `topic` of a DELETE or STRAY directory may be truncated; `unique_id` is empty for LIVE.
    """

    topic: str
    partition: int
    kind: DirectoryKind = DirectoryKind.LIVE
    unique_id: str = ""

    @property
    def topic_partition(self) -> TopicPartition:
        """Return the topic and partition number."""
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        """Return the name of the directory, with the topic truncated where Kafka truncates it."""
        if self.kind is DirectoryKind.LIVE:
            return f"{self.topic}-{self.partition}"
        end = f"-{self.partition}.{self.unique_id}{self.kind.value}"
        if self.kind is DirectoryKind.FUTURE:
            # Kafka truncates the names of directories to be removed, but not of those that it will
            # use again.
            return self.topic + end
        return self.topic[: DIRECTORY_NAME_CHARS_MAX - len(end)] + end


class SegmentFileName(NamedTuple):
    """The parts of a segment file's name; `epoch` is set only for CHECKPOINT."""

    base_offset: int
    kind: FileKind
    state: FileState = FileState.LIVE
    epoch: int | None = None

    @property
    def name(self) -> str:
        """Return the name of the file."""
        epoch = "" if self.epoch is None else f"-{self.epoch:010d}"
        return f"{self.base_offset:020d}{epoch}{self.kind.value}{self.state.value}"


def validate_topic(topic: str) -> str:
    """Return a topic name if Kafka allows it; raises InvalidTopicName. Source: Kafka's Topic."""
    if not topic:
        raise InvalidTopicName(topic, "is empty")
    if topic in (".", ".."):
        raise InvalidTopicName(topic, "is a directory of the file system")
    if len(topic) > TOPIC_NAME_CHARS_MAX:
        raise InvalidTopicName(topic, f"is longer than {TOPIC_NAME_CHARS_MAX} characters")
    if not _TOPIC_CHARS.issuperset(topic):
        raise InvalidTopicName(topic, "has a character other than letters, digits, '.', '_', '-'")
    return topic


def topics_collide(topic: str, other: str) -> bool:
    """Return True if two names are equal once '.' is replaced by '_', as in Kafka's metrics."""
    return topic.replace(".", "_") == other.replace(".", "_")


def parse_topic_partition(name: str) -> TopicPartition:
    """Parse `<topic>-<partition>`, split at the last '-'.

    Raises UnknownDirectoryName. Differs: Kafka's loader also accepts topics with characters that no
    topic may have, a sign, and leading zeros.
    """
    topic, dash, partition = name.rpartition("-")
    if not dash:
        raise UnknownDirectoryName(name, "no '-' between topic and partition")
    if not _is_number(partition, _INT_MAX) or str(int(partition)) != partition:
        raise UnknownDirectoryName(name, f"{partition!r} is not a partition number")
    try:
        validate_topic(topic)
    except InvalidTopicName as error:
        raise UnknownDirectoryName(name, f"the topic {error.reason}") from error
    return TopicPartition(topic, int(partition))


def parse_partition_directory(name: str) -> PartitionDirectory:
    """Return the parts of the name of a partition's directory in a log directory.

    Its suffix shows if it is to be deleted, is a future replica, or is stray. Raises
    UnknownDirectoryName.
    """
    for kind in (DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY):
        if not name.endswith(kind.value):
            continue
        partition, dot, unique_id = name.removesuffix(kind.value).rpartition(".")
        if not dot or len(unique_id) != _UNIQUE_ID_CHARS or not _HEX_CHARS.issuperset(unique_id):
            raise UnknownDirectoryName(name, f"no '.<32 hex digits>' before {kind.value!r}")
        return PartitionDirectory(*parse_topic_partition(partition), kind, unique_id)
    return PartitionDirectory(*parse_topic_partition(name))


# A log directory may have a million segment files, and access to enum members is slow.
_CHANGE_SUFFIXES = tuple(
    (state.value, state) for state in (FileState.DELETED, FileState.CLEANED, FileState.SWAP)
)
_KINDS = {kind.value: kind for kind in FileKind}


def parse_segment_file(name: str) -> SegmentFileName:
    """Return the offset, kind and state in the name of a file in a partition directory.

    Raises UnknownFileName if it is not a name of Kafka's.
    """
    rest, state = name, FileState.LIVE
    for suffix, candidate in _CHANGE_SUFFIXES:
        if name.endswith(suffix):
            rest, state = name.removesuffix(suffix), candidate
            break
    number, dot, suffix = rest.partition(".")
    kind = _KINDS.get(dot + suffix)
    if kind is None:
        raise UnknownFileName(name, "its suffix is none of Kafka's")
    epoch = None
    if kind is FileKind.CHECKPOINT:
        number, _, digits = number.partition("-")
        if len(digits) != _EPOCH_DIGITS or not _is_number(digits, _INT_MAX):
            raise UnknownFileName(name, f"no epoch of {_EPOCH_DIGITS} digits")
        epoch = int(digits)
    if len(number) != _OFFSET_DIGITS or not _is_number(number, _OFFSET_MAX):
        raise UnknownFileName(name, f"no offset of {_OFFSET_DIGITS} digits")
    return SegmentFileName(int(number), kind, state, epoch)


def _is_number(text: str, most: int) -> bool:
    """Return True if a text consists of decimal digits and its value is at most `most`.

    It is False for a text longer than an offset in a file name.
    """
    return 0 < len(text) <= _OFFSET_DIGITS and _DIGITS.issuperset(text) and int(text) <= most


def coordinator_partition(key: str, partition_count: int) -> int:
    """Return the partition of __consumer_offsets or __transaction_state for an id.

    `key` is the group id or transactional id; the leader of the partition is its coordinator.

    Source: Utils.abs of String.hashCode; `formats.md` §7.

    """
    number = _key_hash(key) if len(key) <= HASHED_KEY_CHARS_MAX else java_string_hash(key)
    return 0 if number == _INT_MIN else abs(number) % partition_count


@lru_cache(HASHED_KEYS_MAX)
def _key_hash(key: str) -> int:
    """Return Java's hash of a group id or transactional id; short ids are cached."""
    return java_string_hash(key)


def fits_coordinator_key(key: str) -> bool:
    """Return True if an id fits into a record key of its coordinator's topic.

    It is a group id or transactional id. A longer one must be rejected: the coordinator could not
    store it.
    """
    is_short = len(key) <= COORDINATOR_KEY_BYTES_MAX // _UTF8_BYTES_MAX
    return is_short or len(key.encode("utf-8", "surrogatepass")) <= COORDINATOR_KEY_BYTES_MAX
