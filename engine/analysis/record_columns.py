"""Convert batches to the columns of the view `records`.

Records are converted batch by batch; columns derived from keys and values are computed by Arrow for
all rows at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from engine.analysis.batch_order import Note
from engine.analysis.pruning import ALL_RECORDS, RecordRange
from engine.analysis.row_memory import RowMemory
from engine.analysis.run_rows import RunRows, frame_of
from engine.analysis.splits import Split
from engine.analysis.table_values import Row, timestamps_of
from engine.analysis.view_column import ViewColumn
from engine.errors import CorruptRecord
from engine.limits import ARROW_BATCH_BYTES, ARROW_BATCH_RECORDS_MAX
from engine.native.batch_runs import BatchRun, RunTier
from engine.records.batch import BatchView
from engine.records.crc import crc32c
from engine.records.record import Header, Record
from engine.records.view import RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.host.ports import Buffer

#: Columns that are equal for all records of a batch.
_OF_BATCH: dict[str, Callable[[RecordBatch], object]] = {
    "leaderEpoch": lambda b: b.leader_epoch,
    "producerId": lambda b: b.producer_id,
    "producerEpoch": lambda b: b.producer_epoch,
    "isTransactional": lambda b: b.is_transactional,
    "isControl": lambda b: b.is_control,
    "codec": lambda b: b.codec.label,
    "timestampType": lambda b: int(b.timestamp_type),
}
#: Columns that Arrow computes, with the column that each is computed from.
_DERIVED = {
    "key_size": "key",
    "value_size": "value",
    "value_hash": "value",
    "is_tombstone": "value",
    "schema_id": "value",
    "timestamp": "timestampMs",
}
_ENVELOPE_BYTES = 5


def schema_id_of(value: bytes | None) -> int | None:
    """Return the schema id in a value with the envelope of a schema registry, else None.

    The envelope is a zero byte and an int32.
    """
    if value is None or len(value) < _ENVELOPE_BYTES or value[0]:
        return None
    return int.from_bytes(value[1:_ENVELOPE_BYTES], "big", signed=True)


def _header_list(headers: tuple[Header, ...]) -> list[Row] | None:
    """Return the headers as rows of key and value, None if there are none."""
    if not headers:
        return None
    # Arrow strings must be valid UTF-8: invalid bytes of a name become U+FFFD.
    return [
        {"key": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "value": value}
        for name, value in headers
    ]


class RecordColumns:
    """Collects the records of one split into Arrow batches.

    Batches that compiled code decodes are collected by `run_rows.py`.
    """

    def __init__(
        self,
        columns: tuple[ViewColumn, ...],
        schema: pa.Schema,
        split: Split,
        wanted: RecordRange = ALL_RECORDS,
        memory: RowMemory | None = None,
    ) -> None:
        """Create columns without rows, for the records of one split.

        `memory` has the buffers of compiled code, which later splits reuse.
        """
        # Records below the log start offset are not returned, as for consumers.
        start = max(split.log_start_offset, wanted.first_offset)
        self._wanted = wanted._replace(first_offset=start)
        #: Whether the query restricts offsets or times; and whether no record has to be checked,
        #: not even for the log start offset.
        self._wants_some = wanted != ALL_RECORDS
        self._wants_all = self._wanted == ALL_RECORDS
        self._schema = schema
        self._split = split
        self._names = {column.name for column in columns}
        needed = {_DERIVED.get(name, name) for name in self._names}
        if "is_tombstone" in self._names:
            needed.add("key")
        #: Values of each needed column of records that were decoded in Python; below, the number
        #: and bytes of these records.
        self._lists: dict[str, list[Any]] = {name: [] for name in sorted(needed)}
        self._list_count = 0
        self._size_bytes = 0
        #: Rows of batches that compiled code reads.
        self._rows = RunRows(schema, split, self._wanted, memory or RowMemory(self._names))
        #: Arrow batches collected before compiled code took over from Python, or the reverse: all
        #: earlier than what is collected now.
        self._parts: list[pa.RecordBatch] = []

    @property
    def is_full(self) -> bool:
        """Return True if the collected rows must be taken before more are added."""
        # Rows of compiled code are taken when their buffers are full.
        return (
            bool(self._parts)
            or self._size_bytes >= ARROW_BATCH_BYTES
            or self._list_count >= ARROW_BATCH_RECORDS_MAX
        )

    def add_run(self, run: BatchRun, note: Note) -> Iterator[pa.RecordBatch]:
        """Add the wanted records of a run of batches; yield an Arrow batch each time one is full.

        `_rows` takes the batches up to the first one that it cannot read; that one is opened here.
        A batch whose records are damaged is reported through `note` and skipped.
        """
        number = 0
        while number < run.frame_count:
            if self._list_count:
                # Records of opened batches come before those that `_rows` adds next.
                self._parts.append(self._batch_of_lists())
            is_full = False
            # A compressed batch is decompressed by `add` if all records are wanted.
            if not (self._wants_all and run.is_to_open(number)):
                number, is_full = self._rows.add_run(run, number)
            if not is_full and number < run.frame_count:
                position, raw = run.batch(number)
                batch = BatchView(raw)
                try:
                    self.add(position, batch, run.frame(number))
                except CorruptRecord as error:
                    note(position, batch.size_bytes, "bad_records", str(error))
                number += 1
            if is_full or self.is_full:
                yield from self.take()

    def add(self, position: int, batch: RecordBatch, frame: array[int] | None = None) -> None:
        """Add the wanted records of a batch; `frame` is the batch's entry if it is part of a run.

        Raises CorruptRecord for damaged records; then no record of the batch was added.
        """
        if isinstance(batch, BatchView) and batch.record_count:
            opened = batch.decompress_records() if batch.is_compressed else batch.payload
            if self._add_natively(frame or frame_of(position, batch), opened):
                return
            records = batch.records_in(bytes(opened))
        else:
            records = batch.read_records()
        if self._rows.row_count:
            self._parts.append(self._rows.take())
        if records and (self._wants_some or records[0].offset < self._wanted.first_offset):
            has = self._wanted.has
            records = [r for r in records if has(r.offset, r.timestamp_ms)]
        if not records:
            return
        offsets, times, kinds, keys, values, headers, sequences, _, _ = zip(*records, strict=True)
        varying = {
            "offset": offsets, "timestampMs": times, "key": keys, "value": values,
            "sequence": sequences,
        }  # fmt: skip
        for name, column in self._lists.items():
            if name in varying:
                column.extend(varying[name])
            elif name == "headers":
                column.extend(map(_header_list, headers))
            elif name == "timestampType" and batch.magic < 2:
                # Messages of magic 0 may lie in a wrapper of magic 1.
                column.extend(map(int, kinds))
            else:
                column.extend([self._constant(name, position, batch, records)] * len(records))
        self._list_count += len(records)
        # The batch's own size stands for keys and values that were compressed in it, too.
        self._size_bytes += max(batch.size_bytes, sum(len(v) for v in values if v)) + 64 * len(
            records
        )

    def _add_natively(self, frame: array[int], opened: Buffer) -> bool:
        """Add a batch by compiled code; return False if that cannot read it.

        `frame` are the batch's header fields, `opened` its decompressed records.
        """
        if self._list_count and RunTier.code is not None:
            self._parts.append(self._batch_of_lists())
        is_added = self._rows.add(frame, opened)
        if is_added is None:
            self._parts.append(self._rows.take())
            is_added = self._rows.add(frame, opened)
        return is_added is True

    def _constant(
        self, name: str, position: int, batch: RecordBatch, records: list[Record]
    ) -> object:
        """Return the value of a column that is equal for all `records` of a batch."""
        if name == "topic":
            return self._split.topic
        if name == "partition":
            return self._split.partition
        if name == "segment":
            return self._split.path
        if name == "batchPosition":
            return position
        if name == "baseOffset":
            # In old formats a wrapper has its last offset, and the first record the base offset.
            return batch.base_offset if batch.magic >= 2 else records[0].offset
        return _OF_BATCH[name](batch)

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the collected rows as Arrow batches, and forget them."""
        parts, self._parts = self._parts, []
        yield from parts
        if self._rows.row_count:
            yield self._rows.take()
        if self._list_count:
            yield self._batch_of_lists()

    def _batch_of_lists(self) -> pa.RecordBatch:
        """Convert the collected lists to one Arrow batch, and clear them."""
        import pyarrow as pa

        types = {"key": pa.binary(), "value": pa.binary(), "timestampMs": pa.int64()}
        types |= {f.name: f.type for f in self._schema if f.name not in types}
        plain = {name: pa.array(rows, types[name]) for name, rows in self._lists.items()}
        arrays = [self._column_array(field, plain) for field in self._schema]
        for column in self._lists.values():
            column.clear()
        self._list_count = self._size_bytes = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column_array(self, field: pa.Field, plain: Row) -> pa.Array:
        """Return one column's array, derived from another column if `_DERIVED` names one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        name = field.name
        if name == "timestamp":
            return timestamps_of(plain["timestampMs"], field.type)
        if name in ("key_size", "value_size"):
            sizes = pc.binary_length(plain[_DERIVED[name]])
            return pc.fill_null(sizes, -1).cast(field.type)
        if name == "is_tombstone":
            return pc.and_(pc.is_null(plain["value"]), pc.is_valid(plain["key"]))
        if name == "value_hash":
            hashes = [None if v is None else crc32c(v) for v in self._lists["value"]]
            return pa.array(hashes, field.type)
        if name == "schema_id":
            # Most values are text; only those that start with a zero byte are examined.
            return pa.array(
                [schema_id_of(v) if v and not v[0] else None for v in self._lists["value"]],
                field.type,
            )
        return plain[name]
