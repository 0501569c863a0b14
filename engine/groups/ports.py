"""The functions of the broker that the group coordinator calls.

Source: D22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from engine.host.ports import Clock, Entropy
from engine.host.promise import Promise
from engine.records.record import NO_SEQUENCE, Record

#: Called with the deadline (monotonic) of each new delayed operation.
NoteDeadline: TypeAlias = Callable[[int], None]


class GroupRecord(NamedTuple):
    """A record of `__consumer_offsets`: encoded key, and value or None for a tombstone."""

    key: bytes
    value: bytes | None


class LoadedRecords(NamedTuple):
    """Some records of the log; of one open transaction if `open_producer_id` is not −1."""

    records: Sequence[Record]
    open_producer_id: int = -1


class CommittingProducer(NamedTuple):
    """The producer whose transaction contains an offset commit."""

    producer_id: int
    epoch: int


class Written(NamedTuple):
    """The result of an append: Kafka's error code and the offset of its first record."""

    error_code: int
    base_offset: int = -1


class GroupLog(Protocol):
    """The partitions of `__consumer_offsets` on this broker."""

    def append(
        self,
        partition: int,
        records: Sequence[GroupRecord],
        *,
        base_sequence: int = NO_SEQUENCE,
        producer: CommittingProducer | None = None,
        is_awaited: bool = True,
    ) -> Promise[Written]:
        """Append records to a partition of `__consumer_offsets` as one batch; promise the result.

        The promise is kept once the in-sync replicas have the batch, or with an error code. With a
        `producer` the records belong to its transaction, and count once that is committed.
        `is_awaited` False waits for no other replica and ignores min.insync.replicas.
        """
        ...

    def append_fast(
        self, partition: int, key: bytes, value: bytes, now_ms: int, *, base_sequence: int
    ) -> int | Written | Promise[Written]:
        """Append one record as `append` does; `now_ms` is the wall time.

        Returns the record's offset if it is written and no other replica has to follow.
        """
        ...

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        """Yield all records with a key in log order, at most `LOADED_AT_ONCE` at a time.

        Records of a committed transaction come at the place of its marker, those of open
        transactions last. Raises ApiError or StorageError if the log cannot be read.
        """
        ...

    def partition_count(self) -> int:
        """Return the partition count of `__consumer_offsets`.

        Before the topic exists, the count with which it will be created.
        """
        ...


class GroupSettings(NamedTuple):
    """The broker's settings of groups."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    offset_metadata_max_bytes: int
    offsets_retention_ms: int


class GroupPorts(NamedTuple):
    """The clock, randomness and functions of the broker that the group coordinator uses."""

    clock: Clock
    entropy: Entropy
    log: GroupLog
    note_deadline: NoteDeadline
