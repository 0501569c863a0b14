"""The functions of the broker that the coordinator of transactions calls.

Source: D22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.transactions.records import TransactionRecord


class TransactionLog(Protocol):
    """The partitions of `__transaction_state` on this broker."""

    def append(
        self, partition: int, records: Sequence[TransactionRecord], *, timeout_ms: int
    ) -> Promise[int]:
        """Append records to a partition of `__transaction_state` as one batch.

        Promises 0 once the in-sync replicas have it, else an error code.
        """
        ...

    def read(self, partition: int) -> Iterator[tuple[int, TransactionRecord]]:
        """Yield all records of a partition with their offsets, in log order.

        Raises ApiError or StorageError if the log cannot be read.
        """
        ...

    def end_offset(self, partition: int) -> int:
        """Return the log end offset of a partition, 0 if it is not on this broker."""
        ...

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """Return True if a partition's high watermark has reached `end_offset` (exclusive)."""
        ...

    def partition_count(self) -> int:
        """Return the partition count of `__transaction_state`.

        Before the topic exists, the count with which it will be created.
        """
        ...


class Marker(NamedTuple):
    """A commit or abort marker of one producer, for partitions of one leader."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]


class TransactionOwner(NamedTuple):
    """A producer and partitions, for the check that they are in the producer's open transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


#: Error codes of one marker by partition; a response has one such dict for each marker, in order.
MarkerCodes: TypeAlias = dict[TopicPartition, int]


class MarkerChannels(Protocol):
    """Finds the leaders of partitions, and sends them transaction markers to write."""

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the broker id of a partition's leader, −1 without one, None if it is deleted."""
        ...

    def write(self, broker_id: int, markers: Sequence[Marker]) -> Promise[list[MarkerCodes]]:
        """Send markers to a broker (WriteTxnMarkers) and promise the error codes of each marker.

        The promise fails with an EngineError if the broker was not reached or the response was
        lost.
        """
        ...


class TransactionSettings(NamedTuple):
    """The broker's settings of transactions; field names are Kafka's keys with underscores."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    request_timeout_ms: int


class TransactionPorts(NamedTuple):
    """The clock, timers and functions of the broker that the transaction coordinator uses."""

    clock: Clock
    timers: Timers
    log: TransactionLog
    channels: MarkerChannels
    #: Returns an unused producer id; raises ApiError while there is none.
    new_producer_id: Callable[[], int]
