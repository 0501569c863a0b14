"""Writers of rows in each output format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from engine.errors import EngineError
from kctl import exits
from kctl.render.columns import Column

if TYPE_CHECKING:
    from kctl.render.table import StreamedTable

Row = Mapping[str, object]
#: A row that its command can change and read.
OutputRow: TypeAlias = dict[str, Any]

#: Number of first rows of a streamed table that decide its widths.
STREAMED_ROWS_HELD_MAX: Final = 100

#: Formats for people.
TABLES = ("table", "wide")
#: Tables for tickets and reports.
MARKUPS = ("markdown", "html", "tsv")
FORMATS = (*TABLES, "json", "yaml", "csv", "ndjson", "name", *MARKUPS)
#: Formats whose rows can be written as columns (see `bulk.py`).
_BULK = ("json", "ndjson", "csv")


class UnknownFormat(EngineError):
    """The requested output format does not exist."""

    exit_code = exits.USAGE

    def __init__(self, name: str, allowed: Sequence[str]) -> None:
        super().__init__(f"unknown output format {name!r}: one of {', '.join(allowed)}")
        self.name = name


def check_format(name: str, allowed: Sequence[str] = FORMATS) -> str:
    """Return the name of a format; raises UnknownFormat if it is not in `allowed`."""
    if name not in allowed:
        raise UnknownFormat(name, allowed)
    return name


class RowWriter:
    """Writes rows one at a time; `close` completes the document.

    Each row is written at once, except in tables, whose column widths depend on all rows. With
    `is_stream` tables are written at once, too: the first rows decide their widths.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        output: str = "table",
        stream: TextIO | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        """Create a writer of rows in the format `output`; raises UnknownFormat.

        `stream` is stdout by default. With `is_stream` a table is written while rows arrive, with
        widths of the first ones.
        """
        self._columns = columns
        #: The column with the names of rows, for the format `name`.
        self._name = next((column for column in columns if column.is_name), columns[0])
        self._output = check_format(output)
        self._stream = stream or sys.stdout
        #: Buffered rows of a table whose widths are not known yet.
        self._held: list[Row] = []
        #: The streamed table, None before its widths are known and for other formats.
        self._table: StreamedTable | None = None
        self._is_streamed = is_stream and output in TABLES
        self._count = 0

    @property
    def count(self) -> int:
        """Return the number of rows written up to now."""
        return self._count

    def write(self, row: Row) -> None:
        """Write a row, which has a value for the key of each column.

        Tables buffer it: their widths depend on all rows.
        """
        getattr(self, f"_write_{self._output}", self._held.append)(row)
        self._count += 1
        if self._is_streamed and len(self._held) >= STREAMED_ROWS_HELD_MAX:
            self._write_held()

    def use_columns(self, columns: Sequence[Column]) -> None:
        """Use other columns for the following rows, which json and ndjson allow."""
        self._columns = columns

    def flush(self) -> None:
        """Make all written rows visible, those that a streamed table buffers, too."""
        if self._is_streamed and self._held:
            self._write_held()
        self._stream.flush()

    def _write_held(self) -> None:
        """Write the buffered rows of a streamed table."""
        from kctl.render.table import StreamedTable

        if self._table is None:
            self._table = StreamedTable(self._shown(), self._held, self._stream)
        # Cleared before writing, so that no row is written again after an error.
        rows, self._held = self._held, []
        self._table.write(rows)

    def write_run(self, shared: Row, varying: Mapping[str, Sequence[object]]) -> None:
        """Write many rows at once.

        `shared` has the values that are equal in all rows, `varying` a column of values for each
        other key.
        """
        count = len(next(iter(varying.values())))
        if not count:
            return
        if self._output in _BULK and len(self._columns) > 1:
            self._write_bulk(shared, varying)
            self._count += count
            return
        for number in range(count):
            self.write({**shared, **{key: values[number] for key, values in varying.items()}})

    def _write_bulk(self, shared: Row, varying: Mapping[str, Sequence[object]]) -> None:
        """Write the rows of a run as one text, in a format that is not aligned."""
        from kctl.render.bulk import csv_rows, json_rows

        keys = [column.key for column in self._columns]
        if self._output == "csv":
            if not self._count:
                self._write_csv_line(keys)
            self._stream.write(csv_rows(keys, shared, varying, _csv_cell))
            self._stream.write("\n")
        elif self._output == "ndjson":
            self._stream.write(json_rows(keys, shared, varying, between="\n"))
            self._stream.write("\n")
        else:
            self._stream.write(",\n " if self._count else "[\n ")
            self._stream.write(json_rows(keys, shared, varying, between=",\n "))

    def close(self, *, failures: int = 0) -> None:
        """Write the buffered rows and complete the document.

        A table without rows is left out if failures were reported.
        """
        if self._output == "json":
            self._stream.write("\n]\n" if self._count else "[]\n")
        elif self._output == "csv" and not self._count:
            self._write_csv_line([column.key for column in self._columns])
        elif self._output == "yaml" and not self._count:
            self._stream.write("[]\n")
        elif self._output in MARKUPS:
            from kctl.render.table import write_markup

            write_markup(self._shown(), self._held, self._output, self._stream)
        elif self._output in TABLES and (self._held or not failures or self._table):
            self._close_table()

    def _plain(self, row: Row) -> OutputRow:
        """Return a row with exactly the keys of the columns, in order; missing values are None."""
        return {column.key: row.get(column.key) for column in self._columns}

    def _write_json(self, row: Row) -> None:
        """Write a row as an item of the JSON array; the first row opens the array."""
        self._stream.write(",\n " if self._count else "[\n ")
        self._stream.write(_json_text(self._plain(row)))

    def _write_ndjson(self, row: Row) -> None:
        """Write a row as a line of JSON."""
        self._stream.write(_json_text(self._plain(row)) + "\n")

    def _write_yaml(self, row: Row) -> None:
        """Write a row as a YAML list of one item."""
        import yaml

        # Written in C if available. Lists of one row, concatenated, are one list.
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        yaml.dump(
            [self._plain(row)], self._stream, Dumper=dumper, sort_keys=False, allow_unicode=True
        )

    def _write_name(self, row: Row) -> None:
        """Write the name of a row on a line; nothing for a row without a name."""
        name = row[self._name.key]
        if name is not None:
            self._stream.write(f"{name}\n")

    def _write_csv(self, row: Row) -> None:
        """Write a row as a line of CSV, after the heading line if it is the first row."""
        if not self._count:
            self._write_csv_line([column.key for column in self._columns])
        self._write_csv_line([_csv_cell(row.get(c.key)) for c in self._columns])

    def _write_csv_line(self, cells: Iterable[object]) -> None:
        """Write cells as a line of CSV."""
        import csv
        import io

        # csv quotes the characters of its line end; with CR in it a lone CR is quoted, too.
        line = io.StringIO(newline="")
        csv.writer(line, lineterminator="\r\n").writerow(cells)
        self._stream.write(line.getvalue()[:-2] + "\n")

    def _shown(self) -> list[Column]:
        """Return the columns to show: those marked `wide` only in the format `wide`."""
        return [c for c in self._columns if self._output == "wide" or not c.wide]

    def _close_table(self) -> None:
        """Write the buffered rows, as a whole table or as the rest of a streamed one."""
        from kctl.render.table import write_table

        if self._table is not None:
            self._write_held()
        else:
            write_table(self._shown(), self._held, self._stream)


def write_rows(
    columns: Sequence[Column],
    rows: Iterable[Row],
    output: str,
    stream: TextIO | None = None,
    *,
    failures: int = 0,
) -> int:
    """Write rows in a format to `stream`, by default stdout; return their number.

    With `failures`, a table without rows is left out.
    """
    writer = RowWriter(columns, output, stream)
    count = 0
    for row in rows:
        writer.write(row)
        count += 1
    writer.close(failures=failures)
    return count


def write_object(
    columns: Sequence[Column], row: Row, output: str, stream: TextIO | None = None
) -> None:
    """Write a single object: an object in JSON and YAML, a row in the other formats."""
    stream = stream or sys.stdout
    plain = {column.key: row.get(column.key) for column in columns}
    if output == "json":
        stream.write(_json_text(plain, indent=1) + "\n")
    elif output == "yaml":
        import yaml

        yaml.safe_dump(plain, stream, sort_keys=False, allow_unicode=True)
    else:
        write_rows(columns, [row], output, stream)


def _json_text(value: object, indent: int | None = None) -> str:
    """Return strictly valid JSON: NaN and infinities become texts, as in Protobuf's JSON."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        return json.dumps(
            _without_non_finite(value), ensure_ascii=False, allow_nan=False, indent=indent
        )


def _without_non_finite(value: object) -> object:
    """Return a value in which NaN and infinities are replaced by texts, at any depth."""
    if isinstance(value, dict):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _csv_cell(value: object) -> object:
    """Return a value for a CSV cell: lists and dicts as JSON, booleans in lower case."""
    if isinstance(value, list | dict):
        return _json_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
