"""Append to and read `__transaction_state`, for the transaction coordinator.

Source: TransactionStateManager.appendTransactionToLog, loadTransactionMetadata of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.broker.coordinator_topic import CoordinatorTopic, Waiting
from engine.config.broker_config import BrokerConfig
from engine.host.promise import Promise
from engine.records.builder import BatchSettings
from engine.replication.delayed_produce import ProduceResult
from engine.replication.partition import ACKS_ALL
from engine.transactions.records import TransactionRecord

_SETTINGS = BatchSettings()


class TransactionTopic:
    """The `__transaction_state` partitions of this broker; implements `TransactionLog`."""

    def __init__(self, topic: CoordinatorTopic, config: BrokerConfig) -> None:
        self._topic = topic
        self._config = config

    def partition_count(self) -> int:
        """Return the partition count of `__transaction_state`.

        Before the topic exists, it is the count with which the topic will be created.
        """
        return self._topic.partition_count() or self._config.transaction_state_log_num_partitions

    def append(
        self, partition: int, records: Sequence[TransactionRecord], *, timeout_ms: int
    ) -> Promise[int]:
        """Append records to a partition as one batch with acks=all.

        Promises the error code, 0 if stored.
        """
        waiting = Waiting(ACKS_ALL, timeout_ms)
        return self._topic.append(partition, records, _SETTINGS, waiting, _append_code)

    def read(self, partition: int) -> Iterator[tuple[int, TransactionRecord]]:
        """Yield all records of a partition with their offsets, in order.

        The coordinator loads them. Raises ApiError or StorageError if the log cannot be read.
        """
        buffer_bytes = self._config.transaction_state_log_load_buffer_size
        for batch in self._topic.batches(partition, buffer_bytes):
            for record in batch.records():
                if record.key is not None:
                    yield record.offset, TransactionRecord(record.key, record.value)

    def end_offset(self, partition: int) -> int:
        """Return the log end offset of a partition, 0 if it is not on this broker."""
        return self._topic.end_offset(partition)

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """True if the partition's high watermark has reached `end_offset` (exclusive)."""
        return self._topic.is_committed(partition, end_offset)


def _append_code(result: ProduceResult) -> int:
    """Return the error code of an append, 0 for success."""
    return 0 if result.error is None else result.error.code
