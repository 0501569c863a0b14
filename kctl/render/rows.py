"""Writers of rows, one per output format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from engine.errors import EngineError
from kctl import exits
from kctl.render.columns import Column

Row = Mapping[str, Any]

#: Those for people.
TABLES = ("table", "wide")
FORMATS = (*TABLES, "json", "yaml", "csv", "ndjson", "name")


class UnknownFormat(EngineError):
    """An output format that does not exist was asked for."""

    exit_code = exits.USAGE

    def __init__(self, name: str, allowed: Sequence[str]) -> None:
        super().__init__(f"unknown output format {name!r}: one of {', '.join(allowed)}")
        self.name = name


def check_format(name: str, allowed: Sequence[str] = FORMATS) -> str:
    """Return the format; raises UnknownFormat when it is not allowed."""
    if name not in allowed:
        raise UnknownFormat(name, allowed)
    return name


class RowWriter:
    """Writes rows one at a time; `close()` completes the document.

    JSON, NDJSON and CSV rows are written as they come, tables and YAML at the end.
    """

    def __init__(
        self, columns: Sequence[Column], output: str = "table", stream: TextIO | None = None
    ) -> None:
        self._columns = columns
        self._name = next((column for column in columns if column.is_name), columns[0])
        self._output = check_format(output)
        self._stream = stream or sys.stdout
        self._held: list[Row] = []
        self._count = 0

    @property
    def count(self) -> int:
        """Return how many rows were written."""
        return self._count

    def write(self, row: Row) -> None:
        """Take one row: a value for each column's key."""
        getattr(self, f"_write_{self._output}", self._held.append)(row)
        self._count += 1

    def close(self, *, failures: int = 0) -> None:
        """Write what was held back and end the document.

        A table of nothing but failures, which were told, is left out.
        """
        if self._output == "json":
            self._stream.write("\n]\n" if self._count else "[]\n")
        elif self._output == "csv" and not self._count:
            self._csv_line([column.key for column in self._columns])
        elif self._output == "yaml":
            self._close_yaml()
        elif self._output in TABLES and (self._held or not failures):
            self._close_table()

    def _plain(self, row: Row) -> dict[str, Any]:
        return {column.key: row.get(column.key) for column in self._columns}

    def _write_json(self, row: Row) -> None:
        import json

        self._stream.write(",\n " if self._count else "[\n ")
        self._stream.write(json.dumps(self._plain(row), ensure_ascii=False))

    def _write_ndjson(self, row: Row) -> None:
        import json

        self._stream.write(json.dumps(self._plain(row), ensure_ascii=False) + "\n")

    def _write_name(self, row: Row) -> None:
        name = row[self._name.key]
        if name is not None:
            self._stream.write(f"{name}\n")

    def _write_csv(self, row: Row) -> None:
        if not self._count:
            self._csv_line([column.key for column in self._columns])
        self._csv_line([_csv_cell(row.get(c.key)) for c in self._columns])

    def _csv_line(self, cells: list[Any]) -> None:
        import csv
        import io

        # The writer quotes what its line end has in it, and a lone CR must be quoted too.
        line = io.StringIO(newline="")
        csv.writer(line, lineterminator="\r\n").writerow(cells)
        self._stream.write(line.getvalue()[:-2] + "\n")

    def _close_yaml(self) -> None:
        import yaml

        rows = [self._plain(row) for row in self._held]
        yaml.safe_dump(rows, self._stream, sort_keys=False, allow_unicode=True)

    def _close_table(self) -> None:
        from kctl.render.table import write_table

        shown = [c for c in self._columns if self._output == "wide" or not c.wide]
        write_table(shown, self._held, self._stream)


def write_rows(
    columns: Sequence[Column],
    rows: Iterable[Row],
    output: str,
    stream: TextIO | None = None,
    *,
    failures: int = 0,
) -> int:
    """Write all rows in one format; returns how many there were."""
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
    """Write one thing: an object in JSON and YAML, a row in the other formats."""
    stream = stream or sys.stdout
    plain = {column.key: row.get(column.key) for column in columns}
    if output == "json":
        import json

        stream.write(json.dumps(plain, ensure_ascii=False, indent=1) + "\n")
    elif output == "yaml":
        import yaml

        yaml.safe_dump(plain, stream, sort_keys=False, allow_unicode=True)
    else:
        write_rows(columns, [row], output, stream)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        import json

        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
