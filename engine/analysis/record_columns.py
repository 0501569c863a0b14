"""Batches to the columns of the view `records`, with plain Python: one list a column.

A compiled tier (`compiled_columns.py`) gives the same columns for batches of format 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.analysis.columns import ViewColumn
from engine.analysis.splits import Split
from engine.limits import ARROW_BATCH_BYTES, ARROW_BATCH_RECORDS_MAX
from engine.records.crc import crc32c
from engine.records.record import Record
from engine.records.view import RecordBatch

#: Columns that differ from record to record, and how they are read.
_OF_RECORD: dict[str, Callable[[Record], Any]] = {
    "key": lambda r: r.key,
    "value": lambda r: r.value,
    "offset": lambda r: r.offset,
    "timestamp": lambda r: r.timestamp_ms * 1000,
    "timestampType": lambda r: int(r.timestamp_type),
    "headers": lambda r: _headers(r) if r.headers else None,
    "sequence": lambda r: r.sequence,
    "key_size": lambda r: r.key_size,
    "value_size": lambda r: r.value_size,
    "value_hash": lambda r: None if r.value is None else crc32c(r.value),
    "is_tombstone": lambda r: r.value is None and r.key is not None,
    "schema_id": lambda r: schema_id_of(r.value),
}

#: Columns that are the same throughout a batch.
_OF_BATCH: dict[str, Callable[[RecordBatch], Any]] = {
    "leaderEpoch": lambda b: b.leader_epoch,
    "producerId": lambda b: b.producer_id,
    "producerEpoch": lambda b: b.producer_epoch,
    "isTransactional": lambda b: b.is_transactional,
    "isControl": lambda b: b.is_control,
    "codec": lambda b: b.codec.label,
}


def schema_id_of(value: bytes | None) -> int | None:
    """Return the id in a schema-registry envelope (a zero byte, then an int32), else None."""
    if value is None or len(value) < 5 or value[0]:
        return None
    return int.from_bytes(value[1:5], "big", signed=True)


def _headers(record: Record) -> list[dict[str, Any]]:
    # A name that is no UTF-8 keeps its bytes visible: Arrow strings must be valid.
    return [
        {"key": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "value": value}
        for name, value in record.headers
    ]


class RecordColumns:
    """Collects records of one split until they make an Arrow batch."""

    def __init__(self, columns: tuple[ViewColumn, ...], schema: Any, split: Split) -> None:
        self._schema = schema
        self._split = split
        self._lists: dict[str, list[Any]] = {column.name: [] for column in columns}
        self._needs_values = any(name in self._lists for name in _OF_RECORD)
        self.row_count = 0
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Tell whether it is time to take the rows."""
        return self._size_bytes >= ARROW_BATCH_BYTES or self.row_count >= ARROW_BATCH_RECORDS_MAX

    def add(self, position: int, batch: RecordBatch) -> int:
        """Take the records of a batch that a consumer is given; returns how many.

        Raises CorruptRecord, with nothing taken, when they do not hold.
        """
        records = batch.read_records()
        start = self._split.log_start_offset
        if records and records[0].offset < start:
            records = [record for record in records if record.offset >= start]
        count = len(records)
        for name, column in self._lists.items():
            read = _OF_RECORD.get(name)
            if read is not None:
                column.extend(map(read, records))
            else:
                column.extend([self._constant(name, position, batch, records)] * count)
        self.row_count += count
        self._size_bytes += sum(max(r.value_size, 0) + max(r.key_size, 0) + 64 for r in records)
        return count

    def _constant(self, name: str, position: int, batch: RecordBatch, records: list[Record]) -> Any:
        if name == "topic":
            return self._split.topic
        if name == "partition":
            return self._split.partition
        if name == "segment":
            return self._split.path
        if name == "batchPosition":
            return position
        if name == "baseOffset":
            # An old wrapper says its last offset only; its first record says the first.
            return batch.base_offset if batch.magic >= 2 else records[0].offset if records else 0
        return _OF_BATCH[name](batch)

    def take(self) -> Any:
        """Return the collected rows as a pyarrow record batch, and start again."""
        import pyarrow as pa

        arrays = [pa.array(self._lists[f.name], type=f.type) for f in self._schema]
        for column in self._lists.values():
            column.clear()
        self.row_count = self._size_bytes = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
