"""Records of one batch as columns, for printing, counting and filtering in bulk.

A `Record` object for each record costs more than the work of most commands. Columns are made from
records, or directly from a batch's bytes if compiled code can (`engine.native.record_fields`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeVar

from engine.native.record_fields import (
    FIELDS,
    HEADERS,
    KEY,
    NULL_KEY,
    NULL_VALUE,
    Fields,
    FieldTier,
)
from engine.records.batch import BatchView
from engine.records.decode import PLAIN_BASE_MAX, read_headers_fast
from engine.records.legacy import LegacyBatch
from engine.records.record import Header, Record, TimestampType
from engine.records.view import RecordBatch

T = TypeVar("T")

NO_EPOCH: Final = -1
#: Sizes are passed to compiled code in 32 bits.
_SIZE_END: Final = 1 << 31


class _ColumnChange(Protocol):
    """Returns a column with some of the values of another one."""

    def __call__(self, column: Sequence[T], /) -> Sequence[T]: ...


class RecordRun(NamedTuple):
    """Records in the order of their offsets, as columns of equal length.

    Leader epoch and timestamp type apply to all records; the epoch is −1 in formats without epochs.
    """

    leader_epoch: int
    timestamp_type: TimestampType
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[tuple[Header, ...]]

    @property
    def record_count(self) -> int:
        """Return the number of records."""
        return len(self.offsets)

    def records(self) -> Iterator[Record]:
        """Yield the records one by one, without sequences and checksums, which are not kept."""
        columns = zip(
            self.offsets, self.timestamps_ms, self.keys, self.values, self.headers, strict=True
        )
        kind = self.timestamp_type
        for offset, timestamp_ms, key, value, headers in columns:
            yield Record(offset, timestamp_ms, kind, key, value, headers)

    def slice(self, start: int, end: int) -> RecordRun:
        """Return the records with indexes from `start` to `end` (exclusive)."""
        return self._change_columns(lambda column: column[start:end])

    def select_offsets(self, start_offset: int, end_offset: int | None = None) -> RecordRun:
        """Return the records with offsets from `start_offset` to `end_offset` (exclusive).

        `end_offset` None means up to the last record.
        """
        offsets = self.offsets
        if not offsets or (
            offsets[0] >= start_offset and (end_offset is None or offsets[-1] < end_offset)
        ):
            return self
        start = sum(offset < start_offset for offset in offsets)
        end = len(offsets)
        if end_offset is not None:
            end = sum(offset < end_offset for offset in offsets)
        return self.slice(start, end)

    def at_places(self, places: Sequence[int]) -> RecordRun:
        """Return a run with only the records at these indexes, which count from 0."""
        return self._change_columns(lambda column: [column[place] for place in places])

    def _change_columns(self, change: _ColumnChange) -> RecordRun:
        """Return a run whose columns are the results of `change`.

        Timestamp type and epoch remain.
        """
        return RecordRun(
            self.leader_epoch,
            self.timestamp_type,
            change(self.offsets),
            change(self.timestamps_ms),
            change(self.keys),
            change(self.values),
            change(self.headers),
        )


def records_of(runs: Iterable[RecordRun]) -> list[tuple[Record, int]]:
    """Return all records of the runs in order, each as (record, leader epoch of its batch)."""
    return [(record, run.leader_epoch) for run in runs for record in run.records()]


def read_runs(batch: RecordBatch) -> list[RecordRun]:
    """Return the records of a batch as non-empty runs; raises the errors of `BatchView.records`."""
    if isinstance(batch, LegacyBatch):
        return list(_of_one_time_type(batch.read_records(), NO_EPOCH))
    if not batch.record_count:
        return []
    opened = batch.decompress_records()
    run = read_run_fast(batch, opened)
    if run is not None:
        return [run]
    return list(_of_one_time_type(batch.records_in(opened), batch.leader_epoch))


def _of_one_time_type(records: Iterable[Record], leader_epoch: int) -> Iterator[RecordRun]:
    """Yield one run for each group of successive records that have the same timestamp type."""
    for kind, alike in groupby(records, attrgetter("timestamp_type")):
        offsets, times, _, keys, values, headers, *_ = zip(*alike, strict=True)
        yield RecordRun(leader_epoch, kind, offsets, times, keys, values, headers)


def read_run_fast(batch: BatchView, opened: bytes) -> RecordRun | None:
    """Return the records of a batch decoded by compiled code; None if that cannot decode them.

    `opened` is the decompressed records. `read_runs` decodes them one by one instead.
    """
    read, count = FieldTier.read, batch.record_count
    if read is None or count < 1 or len(opened) >= _SIZE_END:
        return None
    base_offset, base_ms = batch.base_offset, batch.base_timestamp_ms
    if max(abs(base_offset), abs(base_ms)) >= PLAIN_BASE_MAX:
        return None
    fields = read(opened, count)
    headers = None if fields is None else _read_headers(opened, fields, count)
    if fields is None or headers is None:
        return None
    numbers, has = fields
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        times = [batch.max_timestamp_ms] * count
    else:
        times = [base_ms + delta for delta in numbers[1::FIELDS]]
    return RecordRun(
        batch.leader_epoch,
        batch.timestamp_type,
        [base_offset + delta for delta in numbers[0::FIELDS]],
        times,
        _slice_contents(opened, numbers[2::FIELDS], numbers[3::FIELDS], has & KEY, has & NULL_KEY),
        _slice_contents(opened, numbers[4::FIELDS], numbers[5::FIELDS], 1, has & NULL_VALUE),
        headers,
    )


def _slice_contents(
    data: bytes, starts: Sequence[int], ends: Sequence[int], has_content: int, has_null: int
) -> Sequence[bytes | None]:
    """Return the keys or the values of all records, cut from `data` at the given positions.

    None for each record with an end below 0, and for all records if `has_content` is 0. `has_null`
    is 0 if no record has an end below 0.
    """
    if not has_content:
        return [None] * len(starts)
    places = zip(starts, ends, strict=True)
    if not has_null:
        return [data[start:end] for start, end in places]
    return [data[start:end] if end >= 0 else None for start, end in places]


def _read_headers(data: bytes, fields: Fields, count: int) -> Sequence[tuple[Header, ...]] | None:
    """Return the headers of each record, None if the fast reader cannot decode one of them."""
    if not fields.has & HEADERS:
        return [()] * count
    columns = [read_headers_fast(data, position) for position in fields.numbers[6::FIELDS]]
    return None if None in columns else columns  # type: ignore[return-value]
