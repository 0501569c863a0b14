"""The files that one task of an export writes: one, or one for each folder of `--partition-by`.

```
topic=orders/partition=3/date=2026-11-27/part-00000-000004.parquet
```

As in Hive, columns in the folders' names are not in the files. `date` is the UTC day of a record's
timestamp; a record without a displayable timestamp is in the folder of Hive's name for null. A file
is closed early if too many are open or if it is full; the next file of its folder gets a number.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.export_files import ExportFile
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError
from engine.host.ports import Files
from engine.limits import EXPORT_FILES_OPEN_MAX

if TYPE_CHECKING:
    import pyarrow as pa

PARTITIONINGS = ("topic", "partition", "date")
#: The column of `records` whose UTC day is `date`.
_DATE_OF = "timestamp"
_NULL = "__HIVE_DEFAULT_PARTITION__"


class WrongPartitioning(EngineError):
    """The columns of `--partition-by` cannot be folders of an export."""

    exit_code = 2

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(f"--partition-by {text}: {rule}")
        self.text = text


class FileEntry(NamedTuple):
    """One file of an export: its path relative to the export's folder, its records and bytes."""

    name: str
    record_count: int
    file_bytes: int


def check_partitioning(names: Sequence[str], anonymised: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns that `--partition-by` names; raises WrongPartitioning.

    An anonymised column is refused too, because the folder names would reveal its values.
    """
    text = ",".join(names)
    for name in names:
        if name not in PARTITIONINGS:
            raise WrongPartitioning(text, f"expected some of {', '.join(PARTITIONINGS)}")
        if name in anonymised or (name == "date" and _DATE_OF in anonymised):
            raise WrongPartitioning(text, f"names of folders would show {name}")
    if len(set(names)) < len(names):
        raise WrongPartitioning(text, "a name is there twice")
    return tuple(names)


def columns_in_files(
    columns: tuple[ViewColumn, ...], partition_by: Sequence[str]
) -> tuple[ViewColumn, ...]:
    """Return the columns without those that are names of folders.

    Raises WrongPartitioning if none is left.
    """
    left = tuple(column for column in columns if column.name not in partition_by)
    if not left:
        raise WrongPartitioning(",".join(partition_by), "no column is left for the files")
    return left


def require_columns_of_folders(
    columns: tuple[ViewColumn, ...], partition_by: Sequence[str]
) -> tuple[ViewColumn, ...]:
    """Return the columns unchanged; raises WrongPartitioning if one for folders is missing.

    An Iceberg table computes its partitions from columns of the files.
    """
    names = {column.name for column in columns}
    for name in columns_of_folders(partition_by):
        if name not in names:
            raise WrongPartitioning(",".join(partition_by), f"the column {name} is not exported")
    return columns


def parse_folder_values(folder: str) -> dict[str, str | None]:
    """Parse a file's folders such as `topic=a/partition=0` into values by name; null is None."""
    parts = (part.partition("=") for part in folder.split("/") if part)
    return {name: None if value == _NULL else value for name, _, value in parts}


def columns_of_folders(partition_by: Sequence[str]) -> list[str]:
    """Return the columns of `records` from which the folders' names are made."""
    return [_DATE_OF if name == "date" else name for name in partition_by]


class PartitionedFiles:
    """Writes rows to a file in each folder of the partitioning."""

    def __init__(
        self,
        files: Files,
        staging_dir: str,
        name: str,
        schema: pa.Schema,
        file_format: str,
        partition_by: Sequence[str],
        max_bytes: int | None = None,
    ) -> None:
        """Prepare to write rows to files by folder; a file is created with its first rows.

        `name` starts each file's name; `max_bytes` limits a file's size, None means no limit.
        """
        self._files = files
        self._max_bytes = max_bytes
        self._staging_dir = staging_dir
        self._name = name
        self._schema = schema
        self._format = file_format
        self._partition_by = partition_by
        #: Open files by folder, the oldest first.
        self._open: dict[str, ExportFile] = {}
        #: Number of files created in each folder, for the next file's name.
        self._counts: dict[str, int] = {}
        self._done: list[FileEntry] = []

    def add(self, read: pa.RecordBatch, written: pa.RecordBatch) -> None:
        """Write rows to the files of their folders.

        `read` has the values that choose the folders, `written` the columns to write; row by row
        they belong together.
        """
        for folder, rows in self._rows_by_folder(read, written):
            for piece in self._open_file(folder).slices_of(rows):
                file = self._open_file(folder)
                file.add(piece)
                if file.is_full:
                    self._close(folder)

    def _open_file(self, folder: str) -> ExportFile:
        """Return the open file of a folder, or open one; close the oldest if too many are open."""
        if folder not in self._open:
            if len(self._open) >= EXPORT_FILES_OPEN_MAX:
                self._close(next(iter(self._open)))
            self._open[folder] = self._new_file(folder)
        return self._open[folder]

    def _rows_by_folder(
        self, read: pa.RecordBatch, written: pa.RecordBatch
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (folder, its rows of `written`), by the partitioning columns in `read`.

        The folder is `name=value/…`; a null has Hive's name for null. Without partitioning it is
        "".
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._partition_by or not read.num_rows:
            yield "", written
            return
        parts = []
        for name in self._partition_by:
            column = read.column(_DATE_OF if name == "date" else name)
            texts = pc.strftime(column, "%Y-%m-%d") if name == "date" else column.cast(pa.string())
            parts.append(pc.binary_join_element_wise(f"{name}=", pc.fill_null(texts, _NULL), ""))
        folders = pc.binary_join_element_wise(*parts, "/") if len(parts) > 1 else parts[0]
        for folder in pc.unique(folders).to_pylist():
            yield folder, written.filter(pc.equal(folders, folder))

    def _new_file(self, folder: str) -> ExportFile:
        """Return a new file in a folder; from the folder's second file on, names have a number."""
        number = self._counts.get(folder, 0)
        self._counts[folder] = number + 1
        name = f"{self._name}.{number}" if number else self._name
        if folder:
            self._files.make_dir(f"{self._staging_dir}/{folder}")
        stem = posixpath.join(self._staging_dir, folder, name)
        return ExportFile(self._files, stem, self._schema, self._format, self._max_bytes)

    def _close(self, folder: str) -> None:
        """Close the open file of a folder; add it to the finished files if it has rows."""
        file = self._open.pop(folder)
        if count := file.close():
            name = posixpath.relpath(file.path, self._staging_dir)
            self._done.append(FileEntry(name, count, self._files.size_bytes(file.path)))

    def close(self) -> list[FileEntry]:
        """Complete and sync the open files; return all finished files with rows."""
        while self._open:
            self._close(next(iter(self._open)))
        return self._done

    def discard(self) -> None:
        """Remove all files that this task has written, after it failed."""
        for file in self._open.values():
            file.discard()
        for entry in self._done:
            self._files.remove(f"{self._staging_dir}/{entry.name}")
