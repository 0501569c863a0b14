"""The types that a log's callers get: the results and errors of appends and reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import ApiError, StorageError
from engine.host.ports import File
from engine.kafka_errors import (
    OFFSET_OUT_OF_RANGE,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from engine.log.segment import Segment
from engine.log.txn_index import AbortedTransaction
from engine.records.record import NO_TIMESTAMP


class OffsetOutOfRange(ApiError):
    """OFFSET_OUT_OF_RANGE: an offset outside of a log; both bounds are valid offsets."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(
            OFFSET_OUT_OF_RANGE,
            f"offset {offset} is not within {log_start_offset} and {log_end_offset}",
        )
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class NegativeReadSize(ApiError):
    """A read with a negative number of bytes, for which Kafka has no error code."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(UNKNOWN_SERVER_ERROR, f"a read of {max_bytes} bytes")
        self.max_bytes = max_bytes


class RecordListTooLarge(ApiError):
    """One append is larger than a segment may be."""

    def __init__(self, size_bytes: int, segment_bytes: int) -> None:
        super().__init__(
            RECORD_LIST_TOO_LARGE,
            f"an append of {size_bytes} bytes, segments have {segment_bytes}",
        )
        self.size_bytes = size_bytes
        self.segment_bytes = segment_bytes


class UnexpectedAppendOffset(StorageError):
    """A leader sent a follower offsets below its log end offset, or offsets that do not rise."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"offsets {first_offset} to {last_offset} cannot follow, the log ends at "
            f"{log_end_offset}"
        )
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_end_offset = log_end_offset


class BatchOfLaterEpoch(ApiError):
    """A leader sent a follower a batch whose epoch is later than the leader's own."""

    def __init__(self, first_offset: int, batch_epoch: int, leader_epoch: int) -> None:
        super().__init__(
            UNKNOWN_LEADER_EPOCH,
            f"the batch at offset {first_offset} is of epoch {batch_epoch}, its leader's is "
            f"{leader_epoch}",
        )
        self.first_offset = first_offset
        self.batch_epoch = batch_epoch
        self.leader_epoch = leader_epoch


#: Leader epoch that allows appended batches of any epoch.
EPOCH_MAX = (1 << 31) - 1


class AppendInfo(NamedTuple):
    """The result of an append.

    Both offsets are inclusive, −1 when nothing was appended. `log_append_time_ms` is −1 unless
    the broker sets times. For a duplicate, offsets and time are those of the stored batch.
    """

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    leader_epoch: int
    is_duplicate: bool = False


class OffsetMetadata(NamedTuple):
    """An offset with its segment and position, to count bytes without an index search (HW-19)."""

    offset: int
    segment_base_offset: int
    position: int


class OffsetAndTimestamp(NamedTuple):
    """The result of a search by timestamp; timestamp −1 for a bound, epoch None if unknown."""

    timestamp_ms: int
    offset: int
    leader_epoch: int | None


class FetchSlice:
    """Batches that were read: a few as bytes, many as a region of a file.

    A region (`file` is not None) keeps its file open until `release`, which the sender must call
    once; a truncation can make it end early. The last batch may be incomplete, unless it is the
    first and at least one was requested.

    Source: LOG-9.
    """

    __slots__ = (
        "_segment",
        "aborted_transactions",
        "data",
        "file",
        "is_first_batch_incomplete",
        "position",
        "size_bytes",
        "start",
    )

    def __init__(self, start: OffsetMetadata, data: bytes = b"") -> None:
        """Create a slice with `data`.

        The reader sets the other fields before it returns the slice.
        """
        #: Start of the read: the requested offset and the position of its batch.
        self.start = start
        self.data = data
        #: The file of a region, with its position and size in bytes. None: `data` has all bytes.
        self.file: File | None = None
        self.position = start.position
        self.size_bytes = len(data)
        #: Whether fewer bytes than the first batch were read; True only for a read that may end
        #: within a batch.
        self.is_first_batch_incomplete = False
        #: None unless requested.
        self.aborted_transactions: Sequence[AbortedTransaction] | None = None
        #: The segment whose file is kept open for the region. None after `release`.
        self._segment: Segment | None = None

    def set_region(self, segment: Segment, size_bytes: int) -> None:
        """Make the slice a region of a segment's .log: `size_bytes` from its start position on.

        The segment is borrowed: its file stays open until `release`.
        """
        segment.borrow()
        self._segment = segment
        self.file = segment.file
        self.size_bytes = size_bytes

    def read(self) -> bytes:
        """Return the bytes, reading the file if the slice is a region."""
        if self.file is None:
            return self.data
        return self.file.read_at(self.position, self.size_bytes)

    def release(self) -> None:
        """Release the file of a region; does nothing without a region or when called again."""
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.give_back()


#: The result of an append without batches.
NOTHING_APPENDED = AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, -1, 0, -1)
