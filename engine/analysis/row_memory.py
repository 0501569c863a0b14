"""The memory of Arrow columns that compiled code fills: allocated once, passed on with the rows.

| columns | memory |
|---|---|
| offsets, times, sizes | one number a row |
| keys, values, headers' names and contents | their bytes, and the end of each value (int32) |
| headers | for each row the end of its headers |

Only wanted columns have memory. A column that is filled to a small part is copied when its rows are
returned, so that small results do not hold large memory. The memory of other columns is reused when
nothing refers to their rows any more.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

from engine.analysis.pruning import RecordRange
from engine.limits import ARROW_BATCH_BYTES, ARROW_BATCH_HEADERS_MAX, ARROW_BATCH_RECORDS_MAX
from engine.native.batch_runs import RowFiller, RunTier
from engine.native.run_layout import FILL, HEADERS, KEYS, SCHEMA_IDS, SLACK_BYTES, VALUES

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    import pyarrow as pa

    from engine.host.ports import Buffer

    Column: TypeAlias = np.ndarray

_SLOTS = {name: slot for slot, name in enumerate(FILL)}
_INT64_MAX, _INT64_MIN = (1 << 63) - 1, -(1 << 63)
#: Numeric columns that are always filled, with their types: one number a row.
_OF_ROWS = {"offsets": "int64", "times": "int64", "key_sizes": "int32", "value_sizes": "int32"}
#: Columns that are filled for each bit of `takes`, with the number of elements they need.
_TAKEN = {
    KEYS: {"keys": "bytes", "key_ends": "rows"},
    VALUES: {"values": "bytes", "value_ends": "rows"},
    SCHEMA_IDS: {"schema_ids": "numbers"},
    HEADERS: {
        "header_ends": "rows", "names": "bytes", "name_ends": "headers", "contents": "bytes",
        "content_ends": "headers", "content_sizes": "headers",
    },
}  # fmt: skip
#: The bits of `takes` that each column of the view needs.
_NEEDS = {
    "key": KEYS, "value": VALUES, "value_hash": VALUES, "schema_id": SCHEMA_IDS, "headers": HEADERS,
}  # fmt: skip
#: The counter of the used elements of each column; "rows" for columns that are not listed.
_USED_BY = {
    "keys": "key_bytes", "values": "value_bytes", "names": "name_bytes",
    "contents": "content_bytes", "name_ends": "headers", "content_ends": "headers",
    "content_sizes": "headers",
}  # fmt: skip
_COUNTS = (
    "rows", "key_bytes", "value_bytes", "headers", "name_bytes", "content_bytes", "key_nulls",
    "value_nulls", "content_nulls",
)  # fmt: skip
#: A column is copied if less than a quarter of it is used, a small one below a sixteenth.
_SPARSE_FACTOR, _SMALL_SPARSE_FACTOR, _SMALL_BYTES = 4, 16, 1 << 20
#: Buffers kept for each column: a query engine holds one batch while it gets the next.
_GIVEN_MAX = 2
#: References to a free buffer: the list `_given`, and the argument of `sys.getrefcount`.
_OWN_REFERENCES = 2


class RowMemory:
    """Buffers for the rows of consecutive Arrow batches."""

    def __init__(self, names: set[str]) -> None:
        """Prepare buffers for columns `names` of the view `records`, filled by compiled code.

        They are allocated at the first fill.
        """
        #: Bits of the columns that compiled code fills.
        self._takes = 0
        for name in names:
            self._takes |= _NEEDS.get(name, 0)
        #: Compiled code that fills the columns; None before the first call of `fill`.
        self._filler: RowFiller | None = None
        #: Wanted range of the current split; None before the first split.
        self._wanted: RecordRange | None = None
        #: Columns for the next rows, by name.
        self._columns: dict[str, Column] = {}
        #: Columns whose rows were returned, by name: reused when nothing refers to the rows.
        self._given: dict[str, list[Column]] = {}
        self._set_room(ARROW_BATCH_RECORDS_MAX, ARROW_BATCH_BYTES, ARROW_BATCH_HEADERS_MAX)

    def _set_room(self, rows: int, size_bytes: int, headers: int) -> None:
        """Set the sizes of the buffers that the next `fill` allocates: rows, bytes, headers."""
        self._rows_max, self._bytes_max, self._headers_max = rows, size_bytes, headers
        self._columns.clear()
        self._lacks_columns = True
        self._has_more_room = False

    def begin(self, wanted: RecordRange) -> None:
        """Accept only records in the range `wanted` from now on.

        Rows that an earlier reader left are dropped.
        """
        self._wanted = wanted
        if self._filler is not None:
            self._set_wanted(self._filler.numbers, wanted)
            self._forget_rows(self._filler.numbers)

    @property
    def row_count(self) -> int:
        """Return the number of rows filled in."""
        return self._count("rows")

    @property
    def time_range(self) -> tuple[int, int]:
        """Return the smallest and largest timestamp of the rows, in ms."""
        return self._count("least_ms"), self._count("most_ms")

    def fill(self, data: Buffer, frames: array[int], first: int, count: int) -> tuple[int, int]:
        """Fill in `count` batches from number `first` on, by compiled code.

        `frames` has the header fields of each batch, `data` their bytes. Returns why it stopped (a
        verdict of `RowFiller`), and at which batch.
        """
        filler = self._filler or self._make_filler()
        if self._lacks_columns:
            self._make_columns()
        verdict = filler.fill(data, frames, first, count)
        return verdict, filler.numbers[_SLOTS["frame"]]

    def make_room(self, records: int, size_bytes: int) -> None:
        """Plan buffers large enough for a batch of this many records and bytes.

        There must be no rows.
        """
        # A header has two bytes at least.
        self._set_room(
            max(ARROW_BATCH_RECORDS_MAX, records),
            max(ARROW_BATCH_BYTES, size_bytes),
            max(ARROW_BATCH_HEADERS_MAX, size_bytes // 2),
        )
        self._has_more_room = True

    def column(self, name: str) -> Column:
        """Return the filled part of a column's buffer; a copy if little of the buffer is used.

        A column of ends has a 0 in front, as Arrow's offsets have.
        """
        used = self._columns[name][: self._used(name)]
        return used.copy() if self._is_sparse(name) else used

    def binary_column(self, data: str, ends: str, sizes: str, nulls: str) -> pa.Array:
        """Return a binary Arrow column around the named buffers of data, ends and sizes."""
        import numpy as np
        import pyarrow as pa

        validity, null_count = None, self._count(nulls)
        if null_count:
            bits: Column = np.packbits(self.column(sizes) >= 0, bitorder="little")
            validity = pa.py_buffer(bits)
        buffers = [validity, *(pa.py_buffer(self.column(name)) for name in (ends, data))]
        return pa.Array.from_buffers(pa.binary(), self._used(sizes), buffers, null_count)

    def headers(self, kind: pa.ListType) -> pa.Array:
        """Return the column of headers; bytes of names that are not UTF-8 become U+FFFD."""
        import numpy as np
        import pyarrow as pa

        row_count, header_count = self.row_count, self._count("headers")
        if not header_count:
            return pa.nulls(row_count, kind)
        buffers = [None, *(pa.py_buffer(self.column(name)) for name in ("name_ends", "names"))]
        names = pa.Array.from_buffers(pa.string(), header_count, buffers, 0)
        try:
            names.validate(full=True)
        except pa.ArrowInvalid:
            content = names.cast(pa.binary()).to_pylist()
            names = pa.array([name.decode("utf-8", "replace") for name in content], pa.string())
        contents = self.binary_column("contents", "content_ends", "content_sizes", "content_nulls")
        pairs = pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type))
        ends = self.column("header_ends")
        bits: Column = np.packbits(np.diff(ends) > 0, bitorder="little")
        buffers = [pa.py_buffer(bits), pa.py_buffer(ends)]
        return pa.Array.from_buffers(kind, row_count, buffers, children=[pairs])

    def give_away(self) -> None:
        """Leave the filled buffers to the Arrow arrays made from them; no rows are left here."""
        if self._has_more_room:
            self._set_room(ARROW_BATCH_RECORDS_MAX, ARROW_BATCH_BYTES, ARROW_BATCH_HEADERS_MAX)
        for name in [name for name in self._columns if not self._is_sparse(name)]:
            given = self._given.setdefault(name, [])
            given.append(self._columns.pop(name))
            del given[:-_GIVEN_MAX]
        self._lacks_columns = True
        assert self._filler is not None
        self._forget_rows(self._filler.numbers)

    def _forget_rows(self, numbers: array[int]) -> None:
        """Reset the counts and the time range of the compiled code.

        The columns keep their memory.
        """
        for name in _COUNTS:
            numbers[_SLOTS[name]] = 0
        numbers[_SLOTS["least_ms"]], numbers[_SLOTS["most_ms"]] = _INT64_MAX, _INT64_MIN

    def _is_sparse(self, name: str) -> bool:
        """Return True if so little of a column is filled that its rows are copied.

        The large buffer is then kept for the next rows.
        """
        column = self._columns[name]
        factor = _SPARSE_FACTOR if column.nbytes > _SMALL_BYTES else _SMALL_SPARSE_FACTOR
        return self._used(name) * factor < len(column)

    def _used(self, name: str) -> int:
        """Return how many elements of a column are filled.

        A column of ends includes the 0 in front.
        """
        used = self._count(_USED_BY.get(name, "rows"))
        return used + 1 if name.endswith("_ends") else used

    def _count(self, name: str) -> int:
        """Return a counter of the compiled code, 0 before its first call."""
        return 0 if self._filler is None else self._filler.numbers[_SLOTS[name]]

    def _buffer_sizes(self) -> dict[str, tuple[str, int]]:
        """Return type and number of elements of each column that is filled."""
        rows, of_bytes, headers = self._rows_max, self._bytes_max, self._headers_max
        kinds = {
            "bytes": ("uint8", of_bytes + SLACK_BYTES), "rows": ("int32", rows + 1),
            "numbers": ("int64", rows), "headers": ("int32", headers + 1),
        }  # fmt: skip
        sizes = {name: (kind, rows) for name, kind in _OF_ROWS.items()}
        for taken, columns in _TAKEN.items():
            if self._takes & taken:
                sizes |= {name: kinds[of] for name, of in columns.items()}
        return sizes

    def _make_filler(self) -> RowFiller:
        """Create, keep and return the compiled code's filler of the wanted columns and records."""
        assert RunTier.code is not None
        filler = RowFiller(RunTier.code)
        filler.numbers[_SLOTS["takes"]] = self._takes
        self._forget_rows(filler.numbers)
        if self._wanted is not None:
            self._set_wanted(filler.numbers, self._wanted)
        self._filler = filler
        return filler

    def _set_wanted(self, numbers: array[int], wanted: RecordRange) -> None:
        """Set the wanted offsets and times (ms), bounds inclusive, in the filler's numbers."""
        numbers[_SLOTS["first_offset"]] = wanted.first_offset
        numbers[_SLOTS["last_offset"]] = wanted.last_offset
        numbers[_SLOTS["first_ms"]] = wanted.first_ms
        numbers[_SLOTS["last_ms"]] = wanted.last_ms

    def _reusable_buffer(self, name: str, size: int) -> Column | None:
        """Return a buffer of earlier rows that nothing refers to any more, None without one.

        An Arrow array and all its slices refer to the buffer they were made from. A reused buffer
        is in the processor's cache, while fresh memory costs page faults.
        """
        given = self._given.get(name, [])
        for number in range(len(given)):
            if len(given[number]) == size and sys.getrefcount(given[number]) == _OWN_REFERENCES:
                return given.pop(number)
        return None

    def _make_columns(self) -> None:
        """Allocate or reuse the missing buffers; there must be no rows."""
        import numpy as np

        assert self._filler is not None
        numbers = self._filler.numbers
        for name, (kind, size) in self._buffer_sizes().items():
            if name not in self._columns:
                column = self._reusable_buffer(name, size)
                if column is None:
                    column = np.empty(size, kind)
                column[:1] = 0
                self._columns[name] = column
                numbers[_SLOTS[name]] = column.ctypes.data
        self._lacks_columns = False
        numbers[_SLOTS["rows_max"]] = self._rows_max
        numbers[_SLOTS["bytes_max"]] = self._bytes_max
        numbers[_SLOTS["headers_max"]] = self._headers_max
