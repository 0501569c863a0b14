"""Convert runs of batches to Arrow columns by compiled code, all records of many batches at once.

```
chunk of a log ─► positions of its batches (`native/batch_runs.py`) ─► CRCs (`batch_reader.py`)
      ─► their records to the ends of the columns, each key and value copied once
      ─► 4 MiB of keys or of values, or 100,000 rows ─► one Arrow array a column, around that memory
```

1. Compiled code writes values that differ from record to record to their columns, for the wanted
   columns and records only.
2. Values of a batch are repeated for its records.
3. The remaining columns (times in µs, hashes, tombstones) are computed by NumPy for all rows.

A compressed batch is decompressed first; then its records are handled alike. Records that compiled
code does not handle are converted by `record_columns.py`.

Source: facts/spark.md §3.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from engine.analysis.pruning import RecordRange
from engine.analysis.row_memory import RowMemory
from engine.analysis.splits import Split
from engine.analysis.table_values import FIRST_SHOWN_MS, LAST_SHOWN_MS, timestamps_of
from engine.native.batch_runs import WIDTH, BatchRun, RunTier
from engine.native.run_layout import FRAME, FULL, NO_SCHEMA_ID
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.records.decode import PLAIN_BASE_MAX
from engine.records.record import NO_SEQUENCE, SEQUENCE_MAX

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    import pyarrow as pa

    from engine.host.ports import Buffer

    Numbers: TypeAlias = np.ndarray

_CODEC_BITS = 7
#: Columns that are equal for all records of a batch, with the slot of `FRAME` they are read from.
_OF_BATCH = {
    "baseOffset": "base_offset",
    "leaderEpoch": "epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "batchPosition": "position",
}
#: Columns that are one bit of the batch attributes, with the bit's number.
_BITS = {"timestampType": 3, "isTransactional": 4, "isControl": 5}
_NEED_BATCHES = frozenset({*_OF_BATCH, *_BITS, "codec", "sequence"})


class RunRows:
    """Collects rows of one split into an Arrow batch, by compiled code."""

    def __init__(
        self, schema: pa.Schema, split: Split, wanted: RecordRange, memory: RowMemory
    ) -> None:
        """Create a collector of rows of one split that compiled code reads; it has none yet.

        Only one RunRows may use `memory` at a time.
        """
        self._schema = schema
        self._split = split
        self._wanted = wanted
        self._memory = memory
        #: Whether a column has values of batch headers, which are then kept until `take`.
        self._needs_batches = not _NEED_BATCHES.isdisjoint(schema.names)
        self._has_times_in_ms = "timestampMs" in schema.names
        #: Numbers of the batches that gave rows, one part per call.
        self._frames: list[bytes] = []
        #: The same as one array; None before the first call of `take`.
        self._batches: Numbers | None = None
        memory.begin(wanted)

    @property
    def row_count(self) -> int:
        """Return the number of collected rows."""
        return self._memory.row_count

    def add_run(self, run: BatchRun, first: int) -> tuple[int, bool]:
        """Add the wanted records of a run's batches from number `first` on.

        Returns the number of the batch at which it stopped, and whether it is full. If so, the rows
        must be taken first. Otherwise that batch is compressed or not supported by compiled code.
        """
        return self._fill(run.buffer, run.frames, first, run.frame_count)

    def add(self, frame: array[int], opened: Buffer) -> bool | None:
        """Add a batch with the decompressed records `opened`; return True if it was added.

        False: compiled code does not support the batch. None: there is no room. `frame` are the
        batch's numbers (`frame_of`).
        """
        bases = abs(frame[_BASE_OFFSET]), abs(frame[_BASE_MS])
        if RunTier.code is None or max(bases) >= PLAIN_BASE_MAX:
            return False
        if not 0 < frame[_COUNT] < len(opened):
            return False
        if isinstance(opened, memoryview) and opened.readonly:
            opened = bytes(opened)
        # Compiled code expects the records after a batch header.
        frame[_START], frame[_SIZE] = -HEADER_BYTES, len(opened) + HEADER_BYTES
        codec = frame[_ATTRIBUTES] & _CODEC_BITS
        frame[_ATTRIBUTES] ^= codec
        ended, is_full = self._fill(opened, frame, 0, 1, codec)
        frame[_ATTRIBUTES] |= codec
        return None if is_full else ended == 1

    def _fill(
        self, data: Buffer, frames: array[int], first: int, count: int, codec: int = 0
    ) -> tuple[int, bool]:
        """Add batches from number `first` on, with the result of `add_run`.

        `codec` is the compression codec that the batch had.
        """
        memory = self._memory
        verdict, ended = memory.fill(data, frames, first, count)
        if verdict == FULL and not memory.row_count:
            slot = ended * WIDTH
            memory.make_room(frames[slot + _COUNT], frames[slot + _SIZE])
            verdict, ended = memory.fill(data, frames, ended, count)
        if self._needs_batches and ended > first:
            taken = frames[first * WIDTH : ended * WIDTH]
            if codec:
                taken[_ATTRIBUTES] |= codec
            self._frames.append(taken.tobytes())
        return ended, verdict == FULL

    def take(self) -> pa.RecordBatch:
        """Return the collected rows as an Arrow batch, and forget them."""
        import pyarrow as pa

        if self._needs_batches:
            import numpy as np

            self._batches = np.frombuffer(b"".join(self._frames), np.int64).reshape(-1, WIDTH)
        arrays = [self._column_array(field) for field in self._schema]
        self._memory.give_away()
        self._frames.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column_array(self, field: pa.Field) -> pa.Array:
        """Return one column of the collected rows as an Arrow array."""
        import pyarrow as pa

        name, memory = field.name, self._memory
        if name in ("topic", "segment"):
            text = self._split.topic if name == "topic" else self._split.path
            return pa.repeat(text, memory.row_count)
        if name == "partition":
            return pa.repeat(pa.scalar(self._split.partition, field.type), memory.row_count)
        if name == "codec":
            labels = pa.array([codec.label for codec in Codec])
            return labels.take(pa.array(self._batch_field("attributes") & _CODEC_BITS))
        if name == "key":
            return memory.binary_column("keys", "key_ends", "key_sizes", "key_nulls")
        if name == "value":
            return memory.binary_column("values", "value_ends", "value_sizes", "value_nulls")
        if name == "headers":
            return memory.headers(field.type)
        if name == "timestamp":
            return self._timestamps(field.type)
        if name == "schema_id":
            ids = memory.column("schema_ids")
            return pa.array(ids, mask=ids == NO_SCHEMA_ID).cast(field.type)
        if name == "value_hash":
            return self._hashes(field.type)
        numbers = pa.array(self._column_numbers(name))
        return numbers if numbers.type == field.type else numbers.cast(field.type)

    def _column_numbers(self, name: str) -> Numbers:
        """Return one column of numbers or booleans."""
        memory = self._memory
        if name == "offset":
            return memory.column("offsets")
        if name == "timestampMs":
            return memory.column("times")
        if name in ("key_size", "value_size"):
            return memory.column(f"{name}s")
        if name == "is_tombstone":
            is_tombstone: Numbers = memory.column("value_sizes") < 0
            is_tombstone &= memory.column("key_sizes") >= 0
            return is_tombstone
        if name == "sequence":
            return self._sequences()
        if name in _BITS:
            bits: Numbers = (self._batch_field("attributes") >> _BITS[name]) & 1
            return bits
        return self._batch_field(_OF_BATCH[name])

    def _batch_field(self, slot: str) -> Numbers:
        """Return a header field of each batch, repeated for each of its records."""
        import numpy as np

        assert self._batches is not None
        numbers: Numbers = np.repeat(
            self._batches[:, FRAME.index(slot)], self._batches[:, FRAME.index("rows")]
        )
        return numbers

    def _sequences(self) -> Numbers:
        """Return each record's sequence, wrapped at 2^31.

        NO_SEQUENCE without an idempotent producer.
        """
        bases = self._batch_field("base_sequence")
        deltas = self._memory.column("offsets") - self._batch_field("base_offset")
        sequences: Numbers = (bases + deltas) & SEQUENCE_MAX
        sequences[bases < 0] = NO_SEQUENCE
        return sequences

    def _timestamps(self, kind: pa.DataType) -> pa.Array:
        """Return the timestamps in µs; null for years outside of 1 to 9999."""
        import pyarrow as pa

        times = self._memory.column("times")
        least, most = self._memory.time_range
        if least < FIRST_SHOWN_MS or most > LAST_SHOWN_MS:
            return timestamps_of(pa.array(times), kind)
        if self._has_times_in_ms:
            times = times.copy()
        times *= 1000
        return pa.array(times).view(kind)

    def _hashes(self, kind: pa.DataType) -> pa.Array:
        """Return the CRC-32C of each value; null for a null value."""
        import pyarrow as pa

        sizes = self._memory.column("value_sizes")
        ends = self._memory.column("value_ends").tolist()
        values = self._memory.column("values").data
        sums = [crc32c(values[ends[row] : ends[row + 1]]) for row in range(len(sizes))]
        is_null = sizes < 0
        return pa.array(sums, kind, mask=is_null if is_null.any() else None)


_START, _SIZE, _ATTRIBUTES, _BASE_OFFSET, _BASE_MS, _COUNT = (
    FRAME.index(name) for name in ("start", "size", "attributes", "base_offset", "base_ms", "count")
)


def frame_of(position: int, batch: BatchView) -> array[int]:
    """Return a batch's header fields and position in the order that compiled code expects."""
    return array(
        "q",
        (
            0, batch.size_bytes, batch.crc, batch.attributes, batch.last_offset_delta,
            batch.base_offset, batch.base_timestamp_ms, batch.max_timestamp_ms, batch.producer_id,
            batch.producer_epoch, batch.base_sequence, batch.record_count, position,
            batch.leader_epoch, 0, 0,
        ),
    )  # fmt: skip
