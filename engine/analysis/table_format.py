"""Interface of a table for exports: its state, and one commit that publishes files and offsets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from engine.analysis.appending import AppendMismatch
from engine.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

#: Formats that are tables with commits; kctl's extras for them have the same names.
TABLE_FORMATS = ("delta", "iceberg")
#: The end offset of each partition, exclusive, by (topic, partition).
Ends: TypeAlias = Mapping[tuple[str, int], int]


class TableFailed(EngineError):
    """The library of a table format could not read the table or commit to it."""

    def __init__(self, out: str, reason: str) -> None:
        super().__init__(f"the table in {out}: {reason}")
        self.out = out


def parse_stored_form(out: str, text: str) -> Mapping[str, object]:
    """Return an export's options as stored in a table's property; raises AppendMismatch."""
    try:
        form = json.loads(text)
    except ValueError:
        form = None
    if not isinstance(form, dict):
        raise AppendMismatch(out, "the description of its form cannot be read")
    return form


class TableColumns(NamedTuple):
    """The columns that an export writes, and the names of the partitioning columns."""

    schema: pa.Schema
    partition_by: tuple[str, ...]


class TableState(NamedTuple):
    """The state that exports store in a table: form, last run, end offsets.

    `run_count` is the number of the last committed run, 0 without one.
    """

    form: Mapping[str, object]
    run_count: int
    ends: Ends


class TableFile(NamedTuple):
    """A Parquet file to commit.

    Its path in the table's folder, and its partition values by name.
    """

    path: str
    record_count: int
    file_bytes: int
    values: Mapping[str, str | None]


class Table(Protocol):
    """One table in a local folder."""

    #: Name of the file or folder that identifies a table's folder.
    mark: str
    #: Prefix of data files in the folder, with a slash; empty for the folder itself.
    data_folder: str

    def state(self, partitions: Iterable[tuple[str, int]]) -> TableState | None:
        """Return what earlier exports stored in the table: form, runs, ends of these partitions.

        None without a table. Raises AppendMismatch for a table that no export made, TableFailed.
        """
        ...

    def check(self, columns: TableColumns) -> None:
        """Raise AppendMismatch unless an existing table still accepts files with these columns.

        Other programs may have changed the table. Also raises TableFailed.
        """
        ...

    def create(self, columns: TableColumns, form: str) -> list[str]:
        """Create a table without rows; return the paths of the files written.

        The caller syncs these. `form` is stored unchanged, to compare later runs with it. Raises
        TableFailed.
        """
        ...

    def commit(
        self, files: list[TableFile], run: int, ends: Ends, columns: TableColumns
    ) -> list[str]:
        """Add files, the run's number and all end offsets in one commit; return the files written.

        Afterwards the table has either all of them or nothing. Raises TableFailed, and the errors
        of `check`.
        """
        ...
