"""Errors for logs and log directories that cannot be opened."""

from __future__ import annotations

from engine.errors import ApiError, StorageError
from engine.kafka_errors import KAFKA_STORAGE_ERROR
from engine.model import TopicPartition


class KafkaStorageError(ApiError):
    """A partition's directory is offline, or its log cannot be opened."""

    def __init__(self, reason: str) -> None:
        super().__init__(KAFKA_STORAGE_ERROR, reason)
        self.reason = reason


class DuplicateLog(StorageError):
    """Two log directories have a live log of one partition, and nothing shows the right one."""

    hint = (
        "remove the partition's directory below the log directory that failed most recently; if "
        "none has, a crash interrupted the end of a move: remove the smaller copy"
    )

    def __init__(self, topic_partition: TopicPartition, directory: str, other: str) -> None:
        super().__init__(f"{topic_partition} is in {directory} and in {other}")
        self.topic_partition = topic_partition
        self.directory = directory
        self.other = other
