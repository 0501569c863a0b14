"""The file that one task of an export writes: Parquet, ORC, or JSON lines.

| format, compression | bytes are | times are |
|---|---|---|
| parquet, zstd | bytes | timestamps in UTC |
| orc, zstd | bytes | timestamps in UTC |
| json, gzip | base64 | ISO 8601 |
| delta, iceberg | as parquet, added to a table (`table_export.py`) | |

Batches are buffered into row groups; the file is created when the first row group is written. With
a maximum file size a row group has at most an eighth of it, and a file is full as soon as two more
row groups, at their uncompressed size, would not fit.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

from engine.errors import EngineError
from engine.host.ports import Files
from engine.limits import EXPORT_FILE_BYTES_MIN, PARQUET_ROW_GROUP_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

#: Formats, and the extensions of their files.
EXTENSIONS = {
    "parquet": ".parquet", "orc": ".orc", "json": ".json.gz",
    "delta": ".parquet", "iceberg": ".parquet",
}  # fmt: skip
#: Columns with few distinct values, which Parquet stores with a dictionary.
_REPEATING = ("topic", "partition", "timestampType", "codec", "segment", "leaderEpoch",
              "producerEpoch", "producerId", "baseOffset", "batchPosition")  # fmt: skip
#: Number of row groups, at their size in memory, in a file of the maximum size.
_GROUPS_OF_A_FILE = 8
_UNORDERED = ("key", "value", "headers", "value_hash")


class UnknownFileFormat(EngineError):
    """The text of `--format` is not a supported file format."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"--format {name}: expected one of {', '.join(EXTENSIONS)}")
        self.name = name


class FilesTooSmall(EngineError):
    """The requested maximum file size is below EXPORT_FILE_BYTES_MIN.

    File overhead would dominate.
    """

    exit_code = 2

    def __init__(self, size_bytes: int) -> None:
        super().__init__(
            f"files of at most {size_bytes} bytes are too small: at least {EXPORT_FILE_BYTES_MIN}"
        )
        self.size_bytes = size_bytes


def check_file_size(size_bytes: int) -> int:
    """Return the maximum size of exported files unchanged; raises FilesTooSmall."""
    if size_bytes < EXPORT_FILE_BYTES_MIN:
        raise FilesTooSmall(size_bytes)
    return size_bytes


def check_file_format(name: str) -> str:
    """Return the name of an export's file format unchanged; raises UnknownFileFormat."""
    if name not in EXTENSIONS:
        raise UnknownFileFormat(name)
    return name


class _TableWriter(Protocol):
    """Writes Arrow tables to a file of one format."""

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table."""
        ...

    def close(self) -> None:
        """Write the format's footer and close the file."""
        ...


class ExportFile:
    """One file of an export; its path is `stem` with the extension of its format."""

    def __init__(
        self,
        files: Files,
        stem: str,
        schema: pa.Schema,
        file_format: str,
        max_bytes: int | None = None,
    ) -> None:
        """Create a writer of an export's file; the file is created with its first rows.

        `max_bytes` is the maximum size for `is_full`, None for no limit.
        """
        self._files = files
        self._max_bytes = max_bytes
        #: Bytes of rows in memory that make a row group; smaller in files of limited size, so that
        #: they end near the limit.
        self._group_bytes = PARQUET_ROW_GROUP_BYTES
        if max_bytes is not None:
            self._group_bytes = max(min(self._group_bytes, max_bytes // _GROUPS_OF_A_FILE), 1)
        self.path = stem + EXTENSIONS[file_format]
        self._schema = schema
        self._format = file_format
        #: None until the first rows are written.
        self._writer: _TableWriter | None = None
        #: Buffered rows that are not written yet, and their bytes in memory.
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffer rows; write all buffered rows once they reach the size of a row group."""
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._count += batch.num_rows
        if self._held_bytes >= self._group_bytes:
            self._write()

    def slices_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a batch in slices of about a row group each.

        Callers check `is_full` between slices. Without a maximum size the batch is yielded whole.
        """
        if self._max_bytes is None or batch.nbytes <= self._group_bytes:
            yield batch
            return
        row_count = max(batch.num_rows * self._group_bytes // batch.nbytes, 1)
        for start in range(0, batch.num_rows, row_count):
            yield batch.slice(start, row_count)

    @property
    def is_full(self) -> bool:
        """Return True if more rows could exceed the file's maximum size."""
        if self._max_bytes is None or self._writer is None:
            return False
        size_bytes = self._files.size_bytes(self.path) + self._held_bytes
        return size_bytes + 2 * self._group_bytes > self._max_bytes

    def _write(self) -> None:
        """Write the buffered rows; create the file first if it does not exist."""
        import pyarrow as pa

        if self._writer is None:
            self._writer = self._new_writer()
        if self._held:
            self._writer.write(pa.Table.from_batches(self._held, self._schema))
        self._held.clear()
        self._held_bytes = 0

    def _new_writer(self) -> _TableWriter:
        """Create the file, and return a writer of its format."""
        if self._format == "orc":
            from pyarrow import orc

            writer: _TableWriter = orc.ORCWriter(
                self.path, compression="zstd", stripe_size=self._group_bytes
            )
            return writer
        if self._format == "json":
            return _JsonLines(self._files, self.path)
        return _Parquet(self.path, self._schema)

    def close(self) -> int:
        """Write the remaining rows and sync the file; return its row count.

        Without rows no file is created.
        """
        if self._held:
            self._write()
        if self._writer is not None:
            self._writer.close()
            # The driver publishes only files that are synced on the machine that wrote them.
            with closing(self._files.open(self.path, write=True)) as file:
                file.sync()
        return self._count

    def discard(self) -> None:
        """Remove the file if it was created; called if the export fails, or needs no such file."""
        if self._writer is not None:
            self._writer.close()
            self._files.remove(self.path)


def empty_content(schema: pa.Schema, file_format: str) -> bytes:
    """Return the bytes of a file without rows; Parquet and ORC files still contain the columns."""
    import pyarrow as pa

    content = pa.BufferOutputStream()
    if file_format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(schema.empty_table(), content)
    elif file_format == "orc":
        from pyarrow import orc

        orc.write_table(schema.empty_table(), content)
    else:
        return gzip.compress(b"", mtime=0)
    return bytes(content.getvalue().to_pybytes())


class _Parquet:
    def __init__(self, path: str, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        names = schema.names
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[n for n in _REPEATING if n in names],
            write_statistics=[n for n in names if n not in _UNORDERED],
        )

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table as a row group."""
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the footer and close the file."""
        self._writer.close()


class _JsonLines:
    """Writes one gzip member per row group; readers treat concatenated members as one stream."""

    def __init__(self, files: Files, path: str) -> None:
        self._file = files.open(path, write=True, create=True)

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table as lines of JSON, compressed by gzip."""
        lines = "".join(f"{json.dumps(_plain(row))}\n" for row in table.to_pylist())
        self._file.append([gzip.compress(lines.encode(), mtime=0)])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _plain(value: object) -> object:
    """Return a value as JSON represents it: bytes in base64, times in ISO 8601."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
