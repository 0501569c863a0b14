"""Blocks of records to Arrow columns by compiled code, all records of many batches at once.

```
batch → its records without compression → where their fields lie (`native/record_fields.py`)
      → 8 MiB of such blocks → one Arrow array a column
```

1. Numbers (offsets, times, sizes) are added up for all records by NumPy.
2. Keys and values are taken from the blocks: fields of one kind lie in order, so that a block is an
   Arrow array of fields and of what stands between them, and every other element is wanted.
3. What is one for a batch is repeated for its records.
4. Records that are not wanted are left out of the numbers, and no byte of them is taken.

Blocks off the kernel's fast path, and headers if they are wanted, are for `record_columns.py`.

Source: facts/spark.md §3.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.analysis.pruning import RecordRange
from engine.analysis.splits import Split
from engine.analysis.table_values import timestamps_of
from engine.native.record_fields import FIELDS, HEADERS, FieldTier
from engine.records.batch import BatchView
from engine.records.crc import crc32c
from engine.records.decode import PLAIN_BASE_MAX
from engine.records.record import NO_SEQUENCE, SEQUENCE_MAX, TimestampType

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    import pyarrow as pa

    Numbers: TypeAlias = np.ndarray[Any, Any]

_SIZE_END = 1 << 31
_ENVELOPE_BYTES = 5
#: Columns that need the bytes of the blocks; all others are numbers.
_OF_BYTES = frozenset({"key", "value", "value_hash", "schema_id"})
_OFFSET, _TIME, _KEY_START, _KEY_END, _VALUE_START, _VALUE_END, _ = range(FIELDS)


class _Block(NamedTuple):
    """One batch: its numbers, and those that are the same for all its records."""

    numbers: array[int]
    record_count: int
    size: int
    base_offset: int
    base_ms: int
    #: The time of all records, where the log sets it.
    append_ms: int | None
    position: int
    batch: BatchView


class RecordBlocks:
    """Collects blocks of one split until they make an Arrow batch."""

    def __init__(
        self, names: set[str], schema: pa.Schema, split: Split, wanted: RecordRange
    ) -> None:
        self._schema = schema
        self._split = split
        self._wanted = wanted
        self._wants_times = wanted.has_times
        self._has_headers = "headers" in names
        self._has_bytes = bool(names & _OF_BYTES)
        self._blocks: list[_Block] = []
        self._contents: list[bytes] = []
        self.row_count = 0
        self.size_bytes = 0

    def add(self, position: int, batch: BatchView, opened: bytes) -> bool:
        """Take a batch whose records are `opened`; False, with nothing taken, off the fast path."""
        read, count = FieldTier.read, batch.record_count
        if read is None or count < 1 or len(opened) >= _SIZE_END - self.size_bytes:
            return False
        base_offset, base_ms = batch.base_offset, batch.base_timestamp_ms
        if max(abs(base_offset), abs(base_ms)) >= PLAIN_BASE_MAX:
            return False
        fields = read(opened, count)
        if fields is None or (self._has_headers and fields.has & HEADERS):
            return False
        append_ms = None
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_ms = batch.max_timestamp_ms
        if self._wants_times and append_ms is None and self._is_outside(fields.numbers, base_ms):
            return True
        self._blocks.append(
            _Block(
                fields.numbers, count, len(opened), base_offset, base_ms, append_ms, position, batch
            )
        )
        if self._has_bytes:
            self._contents.append(opened)
        self.row_count += count
        self.size_bytes += len(opened)
        return True

    def _is_outside(self, numbers: array[int], base_ms: int) -> bool:
        """Return whether all times of a block are too early, or all too late."""
        import numpy as np

        times: Numbers = np.frombuffer(numbers, np.int64)[_TIME::FIELDS]
        least, most = int(times.min()) + base_ms, int(times.max()) + base_ms
        return least > self._wanted.last_ms or most < self._wanted.first_ms

    def take(self) -> pa.RecordBatch:
        """Return the collected rows as a pyarrow record batch, and start again."""
        import pyarrow as pa

        columns = _Columns(self._blocks, b"".join(self._contents), self._split)
        columns.keep(self._wanted)
        self._blocks, self._contents = [], []
        self.row_count = self.size_bytes = 0
        if not len(columns.offsets):
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        arrays = [columns.array(field) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _Columns:
    """Makes Arrow arrays of blocks."""

    def __init__(self, blocks: list[_Block], content: bytes, split: Split) -> None:
        import numpy as np

        self._blocks = blocks
        self._content = content
        self._split = split
        self._counts = np.array([block.record_count for block in blocks])
        numbers: list[Numbers] = [np.frombuffer(block.numbers, np.int64) for block in blocks]
        self._numbers = np.concatenate(numbers).reshape(-1, FIELDS)
        ends: Numbers = np.cumsum([block.size for block in blocks])
        self._starts: Numbers = np.repeat(ends - [block.size for block in blocks], self._counts)
        self.offsets = self._of_blocks([block.base_offset for block in blocks])
        self.offsets += self._numbers[:, _OFFSET]

    def keep(self, wanted: RecordRange) -> None:
        """Leave out the records that are not wanted."""
        import numpy as np

        is_wanted: Numbers = self.offsets >= wanted.first_offset
        is_wanted &= self.offsets <= wanted.last_offset
        if wanted.has_times:
            times = self._times_ms()
            is_wanted &= (times >= wanted.first_ms) & (times <= wanted.last_ms)
        if is_wanted.all():
            return
        firsts = np.cumsum(self._counts) - self._counts
        self._counts = np.add.reduceat(is_wanted, firsts, dtype=np.int64)
        self._numbers, self._starts = self._numbers[is_wanted], self._starts[is_wanted]
        self.offsets = self.offsets[is_wanted]

    def _of_blocks(self, values: list[int]) -> Numbers:
        """Return a number of each block for each of its records."""
        import numpy as np

        repeated: Numbers = np.repeat(np.array(values, np.int64), self._counts)
        return repeated

    def array(self, field: pa.Field) -> pa.Array:
        """Return one column."""
        import pyarrow as pa

        name, row_count = field.name, len(self.offsets)
        if name in ("topic", "segment"):
            return pa.repeat(self._split.topic if name == "topic" else self._split.path, row_count)
        if name == "partition":
            return pa.repeat(pa.scalar(self._split.partition, field.type), row_count)
        if name == "headers":
            return pa.nulls(row_count, field.type)
        if name == "codec":
            labels = pa.array([block.batch.codec.label for block in self._blocks])
            return labels.take(pa.array(self._of_blocks(list(range(len(self._blocks))))))
        if name in ("key", "value", "schema_id", "value_hash"):
            return self._of_content(name, field.type)
        if name in ("timestamp", "timestampMs"):
            times = pa.array(self._times_ms())
            return timestamps_of(times, field.type) if name == "timestamp" else times
        return pa.array(self._whole_numbers(name)).cast(field.type)

    def _whole_numbers(self, name: str) -> Numbers:
        """Return one column of numbers or truths."""
        numbers, blocks = self._numbers, self._blocks
        if name == "offset":
            return self.offsets
        if name == "baseOffset":
            return self._of_blocks([block.base_offset for block in blocks])
        if name == "batchPosition":
            return self._of_blocks([block.position for block in blocks])
        if name == "key_size":
            return self._sizes(_KEY_START, _KEY_END)
        if name == "value_size":
            return self._sizes(_VALUE_START, _VALUE_END)
        if name == "is_tombstone":
            is_tombstone: Numbers = (numbers[:, _VALUE_END] < 0) & (numbers[:, _KEY_END] >= 0)
            return is_tombstone
        if name == "sequence":
            return self._sequences()
        return self._of_blocks([_OF_BATCH[name](block.batch) for block in blocks])

    def _sizes(self, start: int, end: int) -> Numbers:
        import numpy as np

        ends = self._numbers[:, end]
        sizes: Numbers = np.where(ends < 0, -1, ends - self._numbers[:, start])
        return sizes

    def _sequences(self) -> Numbers:

        bases = self._of_blocks([block.batch.base_sequence for block in self._blocks])
        sequences: Numbers = (bases + self._numbers[:, _OFFSET]) & SEQUENCE_MAX
        sequences[bases < 0] = NO_SEQUENCE
        return sequences

    def _times_ms(self) -> Numbers:

        bases = self._of_blocks([block.base_ms for block in self._blocks])
        times: Numbers = bases + self._numbers[:, _TIME]
        is_set = self._of_blocks([block.append_ms is not None for block in self._blocks]) > 0
        times[is_set] = self._of_blocks([block.append_ms or 0 for block in self._blocks])[is_set]
        return times

    def _of_content(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column made of keys or values: content, schema id, or CRC-32C of the value."""
        import pyarrow as pa

        if name == "key":
            return self._contents(_KEY_START, _KEY_END)
        if name == "value":
            return self._contents(_VALUE_START, _VALUE_END)
        if name == "schema_id":
            return self._schema_ids(kind)
        content = memoryview(self._content)
        starts, ends = self._numbers[:, _VALUE_START], self._numbers[:, _VALUE_END]
        places = zip((starts + self._starts).tolist(), (ends - starts).tolist(), strict=True)
        is_null = ends < 0
        sums = [crc32c(content[start : start + size]) for start, size in places]
        return pa.array(sums, kind, mask=is_null if is_null.any() else None)

    def _contents(self, start: int, end: int) -> pa.Array:
        """Return keys or values: every other element of an array of all that is in the blocks."""
        import numpy as np
        import pyarrow as pa

        starts, ends = self._numbers[:, start], self._numbers[:, end]
        is_null = ends < 0
        edges: Numbers = np.empty(2 * len(starts), np.int32)
        edges[0::2] = starts + self._starts
        edges[1::2] = np.where(is_null, starts, ends) + self._starts
        buffers = [None, pa.py_buffer(edges), pa.py_buffer(self._content)]
        pieces = pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)
        wanted = np.arange(0, len(edges), 2)
        return pieces.take(pa.array(wanted, mask=is_null if is_null.any() else None))

    def _schema_ids(self, kind: pa.DataType) -> pa.Array:
        """Return the ids of values in a schema-registry envelope: a zero byte, then an int32."""
        import numpy as np
        import pyarrow as pa

        content: Numbers = np.frombuffer(self._content, np.uint8)
        sizes = self._sizes(_VALUE_START, _VALUE_END)
        starts = np.where(sizes < _ENVELOPE_BYTES, 0, self._numbers[:, _VALUE_START] + self._starts)
        has_id = (sizes >= _ENVELOPE_BYTES) & (content[starts] == 0)
        starts = starts[has_id]
        ids: Numbers = np.zeros(len(has_id), np.int32)
        for number in range(1, _ENVELOPE_BYTES):
            ids[has_id] = (ids[has_id] << 8) | content[starts + number]
        return pa.array(ids, mask=~has_id).cast(kind)


_OF_BATCH: dict[str, Callable[[BatchView], int]] = {
    "leaderEpoch": lambda batch: batch.leader_epoch,
    "producerId": lambda batch: batch.producer_id,
    "producerEpoch": lambda batch: batch.producer_epoch,
    "isTransactional": lambda batch: batch.is_transactional,
    "isControl": lambda batch: batch.is_control,
    "timestampType": lambda batch: int(batch.timestamp_type),
}
