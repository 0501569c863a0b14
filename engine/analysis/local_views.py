"""The views as DuckDB reads them: Arrow streams of the columns that a query uses.

Each scan of a view opens its own stream. Files are read while DuckDB requests rows, so that only a
few Arrow batches are in memory at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.column_types import duckdb_type
from engine.analysis.columns import CHEAPEST, arrow_schema
from engine.analysis.damage import ReadDamage
from engine.analysis.header_rows import are_of_split, dictionary_schema
from engine.analysis.local_plan import ViewScan
from engine.analysis.local_sql import CRC_OF_BYTES, TEXT_OF_BYTES
from engine.analysis.pruning import ALL_RECORDS, Bounds, RecordRange, bounds_of, within
from engine.analysis.record_batches import ViewReader
from engine.analysis.splits import Split
from engine.analysis.value_decoding import ValueDecoding, views_of
from engine.analysis.view_column import ViewColumn
from engine.analysis.view_pieces import OF_THE_LOG, pieces_of
from engine.host.ports import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

#: The constants of unused columns that are not nullable, by type.
_CONSTANTS = {"string": "''", "int": "0", "long": "0", "boolean": "false"}


class ViewReading(NamedTuple):
    """How the views of a query are read; with `control`, records include control records.

    `decoding` decodes keys and values; `damage` collects the damage found.
    """

    files: Files
    control: bool
    decoding: ValueDecoding | None
    damage: ReadDamage


class LocalView:
    """One view of some splits; each Arrow stream of it reads them from the beginning."""

    def __init__(
        self,
        view: str,
        columns: tuple[ViewColumn, ...],
        splits: list[Split],
        reading: ViewReading,
        wanted: RecordRange = ALL_RECORDS,
    ) -> None:
        self._view = view
        self._wanted = wanted
        self._columns = columns
        self._splits = splits
        self._reading = reading
        schema = arrow_schema(columns, zone=None)
        #: Whether batch headers are enough for the columns, so that no record is decoded.
        self._by_headers = (
            view == "records"
            and not reading.damage.is_strict
            and are_of_split(columns, reading.decoding, wanted)
        )
        self._schema = dictionary_schema(schema) if self._by_headers else schema
        #: The error that ended a stream of this view; None while none has failed.
        self.failure: BaseException | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a new stream of the view's rows, by Arrow's PyCapsule protocol.

        DuckDB calls it for each query that reads the view.
        """
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._schema, self._read_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the view's rows as Arrow batches, read from the splits.

        An error is kept in `failure`, as DuckDB replaces it by its own.
        """
        try:
            reader = ViewReader(
                self._reading.files,
                self._view,
                self._columns,
                control=self._reading.control,
                decoding=self._reading.decoding,
                wanted=self._wanted,
                encodes_texts=self._by_headers,
            )
            reader.seen = self._reading.damage.seen
            if not self._by_headers:
                reader.compute_checksums()
            for split in self._splits:
                for batch in reader.batches_of(split):
                    yield batch.cast(self._schema)
        except GeneratorExit:
            # DuckDB needs no more rows: it has enough, or a failure of its own.
            raise
        except BaseException as error:
            # DuckDB makes an error of its own of everything.
            self.failure = error
            raise


def add_view(
    connection: DuckDBPyConnection,
    view: str,
    scan: ViewScan,
    splits: list[Split],
    reading: ViewReading,
) -> LocalView:
    """Register with DuckDB a view that reads its rows from the splits when a query runs.

    Only the columns of `scan` are read; others are constants. Splits outside its conditions are
    left out.
    """
    names = scan.columns or {CHEAPEST[view]}
    columns = views_of(reading.decoding)[view]
    used = tuple(column for column in columns if column.name in names)
    pieces = pieces_of(view, splits)
    bounds = bounds_of(scan.conditions) if view in OF_THE_LOG else Bounds()
    pieces = within(pieces, bounds)
    reading.damage.expect(view, pieces, bounds.records)
    stream = LocalView(view, used, pieces, reading, bounds.records)
    source = f"kctl_{view}"
    connection.register(source, stream)
    selected = ", ".join(_select_text(column, used) for column in columns)
    connection.execute(f'create temp view "{view}" as select {selected} from "{source}"')
    return stream


def _select_text(column: ViewColumn, used: tuple[ViewColumn, ...]) -> str:
    """Return the SQL that selects a column of a view; for an unused column a constant."""
    if column in used:
        return f'"{column.name}"'
    value = "null" if column.nullable else _CONSTANTS[str(column.type)]
    return f'cast({value} as {duckdb_type(column.type)}) as "{column.name}"'


def add_functions(connection: DuckDBPyConnection) -> None:
    """Register with DuckDB the functions on bytes that Spark's SQL has and DuckDB lacks."""
    connection.create_function(
        TEXT_OF_BYTES, _drop_annotations(text_of_bytes), ["BLOB"], "VARCHAR", type="arrow"
    )
    connection.create_function(
        CRC_OF_BYTES, _drop_annotations(crc_of_bytes), ["BLOB"], "BIGINT", type="arrow"
    )


def _drop_annotations(function: Callable[[pa.Array], pa.Array]) -> Callable[..., object]:
    """Return a function that calls `function` and has no annotations.

    DuckDB would evaluate these, without Arrow imported.
    """

    def call(values: pa.Array) -> pa.Array:
        """Call the function."""
        return function(values)

    call.__annotations__.clear()
    return call


def text_of_bytes(values: pa.Array) -> pa.Array:
    """Return bytes decoded as UTF-8, with U+FFFD for invalid sequences."""
    import pyarrow as pa

    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if v is None else v.decode("utf-8", "replace") for v in values.to_pylist()]
        return pa.array(texts, pa.string())


def crc_of_bytes(values: pa.Array) -> pa.Array:
    """Return the CRC-32 of each value; null stays null."""
    import pyarrow as pa

    sums = [None if value is None else zlib.crc32(value) for value in values.to_pylist()]
    return pa.array(sums, pa.int64())
