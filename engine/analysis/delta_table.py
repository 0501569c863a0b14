"""A Delta table that exports append to, through the library `deltalake`.

| what is stored | where |
|---|---|
| the form of the export | the table's configuration, `kctl.export` |
| the end offset of a partition | the version of the transaction `kctl/<topic>/<number>` |
| the number of the last run | the version of the transaction `kctl` |

These are application transactions: actions of the commit that adds the files. Delta keeps the last
version of each through checkpoints and the cleaning of its log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.analysis.appending import AppendMismatch
from engine.analysis.table_format import (
    Ends,
    TableColumns,
    TableFailed,
    TableFile,
    TableState,
    parse_stored_form,
)
from engine.host.real import RealClock

if TYPE_CHECKING:
    from deltalake import DeltaTable

_FORM = "kctl.export"
_RUN = "kctl"
_ORNAMENTS = re.compile(r"\x1b\[\d*m|↳")


class Delta:
    """The Delta table in a local folder."""

    mark = "_delta_log"
    data_folder = ""

    def __init__(self, out: str) -> None:
        self._out = out

    def state(self, partitions: Iterable[tuple[str, int]]) -> TableState | None:
        """Return what earlier exports stored in the Delta table, None without a table; see `Table`.

        That is its form, the number of runs, and the end offset of each of `partitions`.
        """
        from deltalake import DeltaTable

        with _convert_failures(self._out):
            if not DeltaTable.is_deltatable(self._out):
                return None
            table = DeltaTable(self._out)
            form = table.metadata().configuration.get(_FORM)
            if form is None:
                raise AppendMismatch(self._out, "no export made this table")
            ends = {
                place: end
                for place in partitions
                if (end := table.transaction_version(_app(place))) is not None
            }
            stored = parse_stored_form(self._out, form)
            return TableState(stored, table.transaction_version(_RUN) or 0, ends)

    def check(self, columns: TableColumns) -> None:
        """Raise AppendMismatch unless the Delta table accepts the columns; see `Table`."""
        from deltalake import DeltaTable

        with _convert_failures(self._out):
            _check_columns(self._out, DeltaTable(self._out), columns)

    def create(self, columns: TableColumns, form: str) -> list[str]:
        """Create the Delta table; return the path of its first log entry; see `Table`.

        `form` are the export's options, stored in the table.
        """
        from deltalake import DeltaTable

        with _convert_failures(self._out):
            DeltaTable.create(
                self._out,
                columns.schema,
                partition_by=list(columns.partition_by),
                configuration={_FORM: form},
                raise_if_key_not_exists=False,
            )
        return [self._log_entry(0)]

    def _log_entry(self, version: int) -> str:
        """Return the path of the log file that makes a version of the table visible."""
        return f"{self._out}/{self.mark}/{version:020d}.json"

    def commit(
        self, files: list[TableFile], run: int, ends: Ends, columns: TableColumns
    ) -> list[str]:
        """Add the files and store the run and its end offsets in one commit; see `Table`."""
        from deltalake import CommitProperties, DeltaTable, Transaction

        with _convert_failures(self._out):
            table = DeltaTable(self._out)
            _check_columns(self._out, table, columns)
            now_ms = RealClock().wall_ms()
            versions = {_RUN: run, **{_app(place): end for place, end in sorted(ends.items())}}
            table.create_write_transaction(
                [_add_action(file, now_ms) for file in files],
                "append",
                table.schema(),
                table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(*version) for version in versions.items()]
                ),
            )
            version = DeltaTable(self._out).version()
        return [self._log_entry(version)]


def _check_columns(out: str, table: DeltaTable, columns: TableColumns) -> None:
    """Raise AppendMismatch unless a table accepts files with these columns.

    A table with a constraint is refused, because exports do not check rows against constraints.
    """
    from deltalake import Schema

    metadata = table.metadata()
    if tuple(metadata.partition_columns) != columns.partition_by:
        folders = ", ".join(metadata.partition_columns) or "nothing"
        raise AppendMismatch(out, f"it is partitioned by {folders} now")
    for key, value in metadata.configuration.items():
        is_mapped = key == "delta.columnMapping.mode" and value != "none"
        if is_mapped or key.startswith("delta.constraints."):
            raise AppendMismatch(out, f"it has {key} now, which an export does not keep to")
    of_table = {field.name: field for field in table.schema().fields}
    for field in Schema.from_arrow(columns.schema).fields:
        found = of_table.pop(field.name, None)
        if found is None or found.type != field.type or (field.nullable and not found.nullable):
            raise AppendMismatch(out, f"its column {field.name} is not what it was")
    for name, found in of_table.items():
        if not found.nullable:
            raise AppendMismatch(out, f"it has a column {name} now, which may not be null")


def _app(place: tuple[str, int]) -> str:
    """Return the Delta application id under which a partition's end offset is stored."""
    topic, partition = place
    return f"kctl/{topic}/{partition}"


def _add_action(file: TableFile, now_ms: int) -> object:
    """Return the Delta log's action that adds a file, with partition values and row count."""
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.file_bytes,
        partition_values=dict(file.values),
        modification_time=now_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.record_count}),
    )


@contextmanager
def _convert_failures(out: str) -> Iterator[None]:
    """Convert errors of deltalake and of the file system into TableFailed."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        raise TableFailed(out, _reason(error)) from error


def _reason(error: Exception) -> str:
    """Return an error's message in short: its first line, and its last, which has the cause."""
    lines = [line.strip() for line in _ORNAMENTS.sub("", str(error)).splitlines() if line.strip()]
    return ": ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else type(error).__name__
