"""Make rows of `records` from batch headers alone, for queries that use no column of a record.

```
select topic, partition, count(*) from records …      topic, partition and segment are a split's own
split ─ headers of its batches ─► record count ─► that many equal rows
```

No records are read and no checksum is computed: counts are those in the headers. From a batch on
whose header does not lead to the next one, a split is read in full. Also read in full are splits
with hidden records, splits that start below the log start offset, and files without a descriptor
(archives, object stores).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from struct import Struct
from typing import TYPE_CHECKING, Final

from engine.analysis.batch_order import OffsetSpan, span_of
from engine.analysis.plain_header_counts import count_by_headers
from engine.analysis.pruning import ALL_RECORDS, RecordRange
from engine.analysis.splits import Split
from engine.analysis.value_decoding import ValueDecoding
from engine.analysis.view_column import ViewColumn
from engine.host.ports import File, Files
from engine.limits import COUNTED_ROWS_MAX, COUNTED_SPLIT_BYTES_MIN
from engine.native.header_counts import (
    CountedRecords,
    CountTier,
    HeaderCounter,
    HeaderRange,
    load_or_compile_count,
)
from engine.records.batch_header import PROLOGUE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

#: Unpacks base offset and leader epoch from a batch header.
_FIRST: Final = Struct(">q4xi").unpack_from
#: The columns that are equal in all rows of a split.
_OF_SPLIT: Final = {
    "topic": lambda split: split.topic,
    "partition": lambda split: split.partition,
    "segment": lambda split: split.path,
}


def are_of_split(
    columns: tuple[ViewColumn, ...], decoding: ValueDecoding | None, wanted: RecordRange
) -> bool:
    """Return True if rows of `records` with these columns can be made from batch headers alone.

    That needs columns that are equal in a complete split, no decoding and no restricted range.
    """
    names = {column.name for column in columns}
    return decoding is None and wanted == ALL_RECORDS and names <= _OF_SPLIT.keys()


def dictionary_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which strings are dictionary columns.

    So a repeated value takes four bytes a row.
    """
    import pyarrow as pa

    for index, field in enumerate(schema):
        if pa.types.is_string(field.type):
            texts = pa.dictionary(pa.int32(), pa.string())
            schema = schema.set(index, field.with_type(texts))
    return schema


class HeaderRows:
    """Counts the records of splits by batch headers, and makes their rows."""

    def __init__(self, files: Files, *, include_control: bool) -> None:
        self._files = files
        self._passes_control = not include_control
        self._counter: HeaderCounter | None = None
        #: The offsets that the last call of `count` counted; None if it counted none.
        self.span: OffsetSpan | None = None

    def count(self, split: Split) -> tuple[int, Split | None]:
        """Count a split's records by batch headers; return the count and a split to read in full.

        The latter is None if the headers were enough, the whole split if records are hidden or a
        header is wrong, else the part from the first batch on that needs it.
        """
        self.span = None
        hides_records = split.aborted or split.end_offset is not None
        if hides_records or split.log_start_offset > split.base_offset:
            return 0, split
        with closing(self._files.open(split.path)) as file:
            descriptor = file.fileno()
            first = _first_of(split, file.read_at(split.start, PROLOGUE_BYTES))
            if descriptor is None or first is None:
                return 0, split
            file_end = split.end if split.is_last else file.size_bytes()
            within = HeaderRange(descriptor, split.start, split.end, file_end, *first)
            counted = self._count_records(within, file)
            is_over = counted.position >= split.end
            is_contradicted = is_over and _contradicts(file, split, counted)
            following = counted.next_offset
            if not is_over:
                following, _ = _FIRST(file.read_at(counted.position, PROLOGUE_BYTES))
        if is_contradicted or (
            split.next_base is not None and counted.next_offset > split.next_base
        ):
            return 0, split
        if counted.position > split.start:
            self.span = span_of(split, first[0], following)
        return counted.record_count, None if is_over else split._replace(start=counted.position)

    def rows(self, split: Split, count: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield `count` equal rows of a split in batches that share their memory."""
        import pyarrow as pa

        size = min(count, COUNTED_ROWS_MAX)
        columns = [
            _repeated_column(_OF_SPLIT[field.name](split), field.type, size) for field in schema
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        while count:
            yield rows.slice(0, min(count, size))
            count -= min(count, size)

    def _count_records(self, within: HeaderRange, file: File) -> CountedRecords:
        """Count the records of a range of bytes by batch headers, until one needs a full read.

        Compiled code is used if it is loaded: a large split loads it, a small split does not.
        """
        if self._counter is None:
            is_large = within.limit - within.start >= COUNTED_SPLIT_BYTES_MIN
            if CountTier.code is None and not (is_large and load_or_compile_count()):
                return count_by_headers(within, file.read_at, passes_control=self._passes_control)
            assert CountTier.code is not None
            self._counter = HeaderCounter(CountTier.code, passes_control=self._passes_control)
        return self._counter.count(within)


def _first_of(split: Split, head: bytes) -> tuple[int, int] | None:
    """Return base offset and leader epoch of a split's first batch, by its first bytes `head`.

    None if they cannot be right.
    """
    if len(head) < PROLOGUE_BYTES:
        return None
    offset, epoch = _FIRST(head)
    is_right = offset == split.base_offset if split.start == 0 else offset > split.base_offset
    return (offset, epoch) if is_right else None


def _contradicts(file: File, split: Split, counted: CountedRecords) -> bool:
    """Return True if the batch after a split has a base offset below the counted end.

    A higher base offset is no contradiction: compaction removes offsets.
    """
    if split.is_last:
        return False
    head = file.read_at(split.end, PROLOGUE_BYTES)
    if counted.position > split.end or len(head) < PROLOGUE_BYTES:
        return True
    offset, _ = _FIRST(head)
    return bool(offset < counted.next_offset)


def _repeated_column(value: str | int, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column that has the same value `count` times, as a dictionary if `kind` is one."""
    import pyarrow as pa

    if not pa.types.is_dictionary(kind):
        return pa.repeat(pa.scalar(value, kind), count)
    indices = pa.repeat(pa.scalar(0, kind.index_type), count)
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], kind.value_type))
