"""The file that one task of an export writes: Parquet, ORC, or JSON in lines.

| format | bytes are | times are |
|---|---|---|
| parquet, zstd | bytes | timestamps in UTC |
| orc, zstd | bytes | timestamps in UTC |
| json, gzip | base64 | ISO 8601 |
| delta, iceberg | as parquet, added to a table (`table_export.py`) | |

Batches are gathered into row groups of a good size; the file is opened with the first.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import EngineError
from engine.host.ports import Files
from engine.limits import PARQUET_ROW_GROUP_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

#: Formats, and how the names of their files end.
EXTENSIONS = {
    "parquet": ".parquet", "orc": ".orc", "json": ".json.gz",
    "delta": ".parquet", "iceberg": ".parquet",
}  # fmt: skip
#: Few values, many repeats: worth a dictionary. Keys and values are not.
_REPEATING = ("topic", "partition", "timestampType", "codec", "segment", "leaderEpoch",
              "producerEpoch", "producerId", "baseOffset", "batchPosition")  # fmt: skip
_UNORDERED = ("key", "value", "headers", "value_hash")


class UnknownFileFormat(EngineError):
    """A file format was requested that is not written."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"--format {name}: expected one of {', '.join(EXTENSIONS)}")
        self.name = name


def check_file_format(name: str) -> str:
    """Return a format; raises UnknownFileFormat."""
    if name not in EXTENSIONS:
        raise UnknownFileFormat(name)
    return name


class _TableWriter(Protocol):
    """What writes tables to a file."""

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table."""
        ...

    def close(self) -> None:
        """Write the end of the file."""
        ...


class ExportFile:
    """One file of an export, at `stem` with the ending of its format."""

    def __init__(self, files: Files, stem: str, schema: pa.Schema, file_format: str) -> None:
        self._files = files
        self.path = stem + EXTENSIONS[file_format]
        self._schema = schema
        self._format = file_format
        self._writer: _TableWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._count += batch.num_rows
        if self._held_bytes >= PARQUET_ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = _writer(self._files, self.path, self._schema, self._format)
        if self._held:
            self._writer.write(pa.Table.from_batches(self._held, self._schema))
        self._held.clear()
        self._held_bytes = 0

    def close(self) -> int:
        """Complete the file, durably; returns its rows. There is none without rows."""
        if self._held:
            self._write()
        if self._writer is not None:
            self._writer.close()
            # The driver publishes only what is on the disk of the machine that wrote it.
            with closing(self._files.open(self.path, write=True)) as file:
                file.sync()
        return self._count

    def discard(self) -> None:
        """Remove the file."""
        if self._writer is not None:
            self._writer.close()
            self._files.remove(self.path)


def empty_content(schema: pa.Schema, file_format: str) -> bytes:
    """Return a file without rows, which still says its columns where the format does."""
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


def _writer(files: Files, path: str, schema: pa.Schema, file_format: str) -> _TableWriter:
    if file_format == "orc":
        from pyarrow import orc

        writer: _TableWriter = orc.ORCWriter(path, compression="zstd")
        return writer
    return _JsonLines(files, path) if file_format == "json" else _Parquet(path, schema)


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
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class _JsonLines:
    """Writes one gzip member a row group: readers take several as one stream."""

    def __init__(self, files: Files, path: str) -> None:
        self._file = files.open(path, write=True, create=True)

    def write(self, table: pa.Table) -> None:
        lines = "".join(f"{json.dumps(_plain(row))}\n" for row in table.to_pylist())
        self._file.append([gzip.compress(lines.encode(), mtime=0)])

    def close(self) -> None:
        self._file.close()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
