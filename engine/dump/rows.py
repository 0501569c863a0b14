r"""Log files as rows of plain values, for JSON, NDJSON, CSV and tables.

Binary data is given as base64, and as a text without loss: `encoding` is `utf-8` if the text has
exactly these bytes, `escaped` if they are not UTF-8 and a backslash starts an escape (`\xNN`,
`\\`), and null if the key or value is null. An empty one is `""`.

The columns are documented in docs/reference/dump_rows.md.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from engine.dump.batch_line import (
    ShallowBatch,
    is_valid_legacy,
    is_valid_v2,
    parse_legacy_header,
    parse_v2_header,
)
from engine.dump.control_line import parse_control
from engine.dump.decoders import TextDecoder
from engine.dump.file_names import base_offset_of, suffix_of
from engine.dump.frames import iter_frames
from engine.dump.options import INT_MAX, DumpOptions
from engine.dump.seek import find_start
from engine.errors import CorruptRecord
from engine.host.ports import File, Files
from engine.log.window import Window
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES, MAGIC
from engine.records.record import NO_SEQUENCE, SEQUENCE_MAX, Record
from engine.records.record_run import RecordRun, read_runs
from engine.records.view import batch_at

Row = dict[str, Any]

RECORD_COLUMNS = (
    "file", "topic", "partition", "offset", "timestamp_ms", "timestamp_type",
    "key", "key_encoding", "key_base64", "value", "value_encoding", "value_base64",
    "headers", "key_size_bytes", "value_size_bytes", "sequence",
    "producer_id", "producer_epoch", "leader_epoch", "is_transactional", "is_control",
    "control_type", "coordinator_epoch", "codec", "magic", "batch_base_offset",
    "batch_position", "is_crc_valid", "decoded_key", "decoded_value",
)  # fmt: skip

BATCH_COLUMNS = (
    "file", "topic", "partition", "position", "base_offset", "last_offset", "record_count",
    "size_bytes", "magic", "codec", "crc", "is_crc_valid", "leader_epoch", "producer_id",
    "producer_epoch", "base_sequence", "last_sequence", "is_transactional", "is_control",
    "timestamp_type", "base_timestamp_ms", "max_timestamp_ms", "delete_horizon_ms",
)  # fmt: skip

INDEX_COLUMNS: dict[str, tuple[str, ...]] = {
    ".index": ("file", "offset", "position"),
    ".timeindex": ("file", "timestamp_ms", "offset"),
    ".txnindex": (
        "file", "version", "producer_id", "first_offset", "last_offset", "last_stable_offset",
    ),
    ".snapshot": (
        "file", "producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta",
        "timestamp_ms", "coordinator_epoch", "current_txn_first_offset",
    ),
}  # fmt: skip

_ENTRIES = {
    ".index": struct.Struct(">ii"),
    ".timeindex": struct.Struct(">qi"),
    ".txnindex": struct.Struct(">hqqqq"),
    ".snapshot": struct.Struct(">qhiqiqiq"),
}
_SNAPSHOT_HEAD_BYTES = 10


class DumpedRows(NamedTuple):
    """Consecutive rows: their shared values, and the columns that vary.

    Without varying columns it is a single row.
    """

    columns: tuple[str, ...]
    shared: Row
    varying: Mapping[str, Sequence[object]]

    def iter_rows(self) -> Iterator[Row]:
        """Yield each row as a dict."""
        if not self.varying:
            yield self.shared
            return
        for values in zip(*self.varying.values(), strict=True):
            yield {**self.shared, **dict(zip(self.varying, values, strict=True))}


class RowDump:
    """Yields the rows of files, in order."""

    def __init__(self, files: Files, options: DumpOptions, *, headers_only: bool) -> None:
        """With `headers_only` rows are batches, else records."""
        self._files = files
        self._options = options
        self._headers_only = headers_only
        self.default_columns = BATCH_COLUMNS if headers_only else RECORD_COLUMNS
        #: Number of batches with a wrong CRC, and of damaged ends of files, so far.
        self.problem_count = 0
        #: Number of rows that --max-records still allows, None without a limit.
        self._left = options.filters.max_records

    def dump_rows(self, paths: list[str]) -> Iterator[DumpedRows]:
        """Yield the rows of all files that match the filters, file by file."""
        for path in paths:
            suffix = suffix_of(path) or ""
            if suffix in _ENTRIES:
                for columns, row in self._dump_entries(path, suffix):
                    yield DumpedRows(columns, row, {})
            elif self._left != 0:
                yield from self._dump_log(path)

    def _dump_entries(self, path: str, suffix: str) -> Iterator[tuple[tuple[str, ...], Row]]:
        """Yield (columns, row) for each entry of an index, producer snapshot or transaction index.

        Offsets of indexes are absolute.
        """
        columns, layout = INDEX_COLUMNS[suffix], _ENTRIES[suffix]
        raw = self._files.read_bytes(path)
        start = _SNAPSHOT_HEAD_BYTES if suffix == ".snapshot" else 0
        base = base_offset_of(path) if suffix in (".index", ".timeindex") else 0
        for n in range((len(raw) - start) // layout.size):
            values = list(layout.unpack_from(raw, start + n * layout.size))
            if suffix in (".index", ".timeindex"):
                # A preallocated index ends in zeros.
                if n and not any(values):
                    return
                at = columns.index("offset") - 1
                values[at] += base
            yield columns, dict(zip(columns, [path, *values], strict=True))

    def _dump_log(self, path: str) -> Iterator[DumpedRows]:
        """Yield the rows of a log: one per batch with `headers_only`, else one per record."""
        with closing(self._files.open(path)) as file:
            end = min(file.size_bytes(), self._options.max_bytes)
            topic, partition = _parse_partition(path)
            batch_rows = BatchRows(file, path, end, self._options)
            place = {"file": path, "topic": topic, "partition": partition}
            start = find_start(self._files, file, self._options.filters)
            for shallow, row, batch in batch_rows.iter_batches(start):
                row.update(place)
                if self._headers_only:
                    if self._count_if_wanted(shallow, batch):
                        yield DumpedRows(BATCH_COLUMNS, row, {})
                else:
                    rows = self._dump_records_fast(row, batch)
                    yield from self._dump_records(row, batch) if rows is None else rows
                if self._left == 0:
                    break
            self.problem_count += batch_rows.problem_count

    def _count_if_wanted(self, shallow: ShallowBatch, batch: memoryview) -> bool:
        """Return True if the batch, or one of its records, matches the filters.

        It then counts as a row.
        """
        filters = self._options.filters
        if filters.opens_batches and not any(
            filters.matches(record) for record in batch_at(batch, 0).records()
        ):
            return False
        self._count_rows()
        return True

    def _dump_records_fast(self, header: Row, batch: memoryview) -> list[DumpedRows] | None:
        """Return the rows of a batch's records, built by column.

        None if they must be read one by one: for filters, decoders, control records, old formats,
        damage.
        """
        if header["is_control"] or header["magic"] < MAGIC or self._options.filters.picks_some:
            return None
        if not isinstance(self._options.decoder, TextDecoder):
            return None
        try:
            runs_of_batch = read_runs(batch_at(batch, 0))
        except CorruptRecord:
            # The slow path shows the rows before the damage.
            return None
        dumped = []
        for run in runs_of_batch:
            wanted = run if self._left is None else run.slice(0, self._left)
            self._count_rows(wanted.record_count)
            dumped.append(_run_rows(header, wanted))
        return dumped

    def _dump_records(self, header: Row, batch: memoryview) -> Iterator[DumpedRows]:
        """Yield a row for each matching record of a batch, up to the limit of records.

        `header` is the batch's row. Raises CorruptRecord with the position of the batch.
        """
        shared = _shared_by_records(header)
        filters = self._options.filters
        try:
            for record in batch_at(batch, 0).records():
                if filters.any_set and not filters.matches(record):
                    continue
                self._count_rows()
                yield DumpedRows(RECORD_COLUMNS, {**shared, **self._record_row(record, header)}, {})
                if self._left == 0:
                    return
        except CorruptRecord as error:
            raise error.at(header["file"], header["position"]) from error

    def _count_rows(self, count: int = 1) -> None:
        """Subtract `count` from the number of rows that may still be shown, if that is limited."""
        if self._left is not None:
            self._left -= count

    def _record_row(self, record: Record, header: Row) -> Row:
        """Return the columns that differ from record to record, for one record.

        They include the type of a control record, or else the decoded key and value.
        """
        row: Row = {
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key_size_bytes": record.key_size,
            "value_size_bytes": record.value_size,
            "sequence": record.sequence,
            "headers": [header_row(name, value) for name, value in record.headers],
        }
        add_binary(row, "key", record.key)
        add_binary(row, "value", record.value)
        if record.is_crc_valid is not None:
            row["is_crc_valid"] = record.is_crc_valid
        if header["is_control"]:
            row["control_type"], row["coordinator_epoch"] = parse_control(record)
        elif not isinstance(self._options.decoder, TextDecoder):
            self._decode(row, record)
        return row

    def _decode(self, row: Row, record: Record) -> None:
        """Add the decoded key and value of a record to its row."""
        self._options.decoder.open()
        key, value = self._options.decoder.texts(record.offset, record.key, record.value)
        row["decoded_key"], row["decoded_value"] = parse_decoded(key), parse_decoded(value)


class BatchRows:
    """Reads the batches of a log as rows; a truncated or damaged tail is counted as a problem."""

    def __init__(self, file: File, path: str, end: int, options: DumpOptions) -> None:
        """Only the bytes before `end` are read."""
        self._window = Window(file, end)
        self._path = path
        self._end = end
        #: True if the user has set a limit: bytes after it are then not a damaged tail.
        self._limited = options.max_bytes != INT_MAX
        self._filters = options.filters
        self.problem_count = 0

    def iter_batches(self, start: int = 0) -> Iterator[tuple[ShallowBatch, Row, memoryview]]:
        """Yield header, row and bytes of each batch that may contain a matching record.

        Counts in `problem_count` batches with a wrong CRC, and an incomplete batch at the end.
        """
        position = start
        for position, size in iter_frames(self._window, self._path, self._end, start):
            batch = self._window.read_exactly(position, size, "a record batch")
            shallow, row = _batch_row(batch, position, self._path)
            position += size  # noqa: PLW2901 - the position after the last batch is used below
            if self._filters.is_past_end(shallow.base_offset):
                return
            self.problem_count += not row["is_crc_valid"]
            if self._filters.may_match_batch(
                shallow.last_offset, shallow.max_timestamp_ms, shallow.producer_id
            ):
                yield shallow, row, batch
        if position < self._end and not self._limited:
            self.problem_count += 1


def _batch_row(batch: memoryview, position: int, path: str) -> tuple[ShallowBatch, Row]:
    """Parse a batch's header; return it and the batch's row.

    Raises CorruptRecord if the header is truncated (18 bytes for magic 0, 26 for magic 1), or the
    magic is negative: Kafka reads it as a signed byte.
    """
    magic = batch[16]
    needed = HEADER_BYTES if magic >= 2 else 18 if magic == 0 else 26
    if magic >= 128 or len(batch) < needed:
        raise CorruptRecord("a whole batch header", f"magic {magic}", path=path, position=position)
    if magic < 2:
        shallow, crc = parse_legacy_header(batch, magic)
        return shallow, _common_row(shallow, position, crc, is_valid_legacy(batch, crc))
    shallow, crc = parse_v2_header(batch)
    row = _common_row(shallow, position, crc, is_valid_v2(batch, crc))
    view = BatchView(batch)
    row.update(
        leader_epoch=view.leader_epoch,
        producer_epoch=view.producer_epoch,
        record_count=view.record_count,
        last_sequence=view.last_sequence,
        is_transactional=view.is_transactional,
        base_timestamp_ms=view.base_timestamp_ms,
        delete_horizon_ms=view.delete_horizon_ms,
    )
    return shallow, row


def _common_row(shallow: ShallowBatch, position: int, crc: int, is_valid: bool) -> Row:
    """Return the columns of a batch's row that batches of all magics have."""
    names = ("none", "gzip", "snappy", "lz4", "zstd")
    return {
        "position": position,
        "base_offset": shallow.base_offset,
        "last_offset": shallow.last_offset,
        "size_bytes": shallow.size_bytes,
        "magic": shallow.magic,
        "codec": names[shallow.codec] if shallow.codec < 5 else f"unknown({shallow.codec})",
        "crc": crc,
        "is_crc_valid": is_valid,
        "producer_id": shallow.producer_id,
        "base_sequence": shallow.base_sequence,
        "is_control": shallow.is_control,
        "is_transactional": False,
        "timestamp_type": shallow.time_label.decode(),
        "max_timestamp_ms": shallow.max_timestamp_ms,
    }


def _shared_by_records(header: Row) -> Row:
    """Return the columns that all records of a batch share, from its row."""
    names = ("file", "topic", "partition", "timestamp_type", "producer_id", "producer_epoch",
             "leader_epoch", "is_transactional", "is_control", "codec", "magic",
             "is_crc_valid")  # fmt: skip
    shared = {name: header.get(name) for name in names}
    shared["batch_base_offset"] = header["base_offset"]
    shared["batch_position"] = header["position"]
    return shared


def _run_rows(header: Row, run: RecordRun) -> DumpedRows:
    """Return the rows of a run by column; they equal those of `_record_row` for each record."""
    shared = _shared_by_records(header)
    varying: dict[str, Sequence[object]] = {
        "offset": run.offsets,
        "timestamp_ms": run.timestamps_ms,
    }
    base_sequence = header["base_sequence"]
    if base_sequence < 0:
        shared["sequence"] = NO_SEQUENCE
    else:
        first = base_sequence - header["base_offset"]
        varying["sequence"] = [(first + offset) & SEQUENCE_MAX for offset in run.offsets]
    if any(run.headers):
        varying["headers"] = [[header_row(*pair) for pair in headers] for headers in run.headers]
    else:
        shared["headers"] = []
    _add_binaries(shared, varying, "key", run.keys)
    _add_binaries(shared, varying, "value", run.values)
    return DumpedRows(RECORD_COLUMNS, shared, varying)


def _add_binaries(
    shared: Row, varying: dict[str, Sequence[object]], name: str, contents: Sequence[bytes | None]
) -> None:
    """Add the columns of keys or values: to `shared` if all rows have one value, else `varying`.

    They equal those that `add_binary` adds to single rows, with the sizes.
    """
    nulls = contents.count(None)
    if nulls == len(contents):
        add_binary(shared, name, None)
        shared[f"{name}_size_bytes"] = -1
        return
    sizes = [-1 if raw is None else len(raw) for raw in contents]
    varying[f"{name}_size_bytes"] = sizes
    varying[f"{name}_base64"] = [
        None if raw is None else b2a_base64(raw, newline=False).decode("ascii") for raw in contents
    ]
    try:
        varying[name] = [None if raw is None else raw.decode("utf-8") for raw in contents]
        if nulls:
            varying[f"{name}_encoding"] = [None if raw is None else "utf-8" for raw in contents]
        else:
            shared[f"{name}_encoding"] = "utf-8"
    except UnicodeDecodeError:
        forms = [text_form(raw) for raw in contents]
        varying[name] = [text for text, _ in forms]
        varying[f"{name}_encoding"] = [encoding for _, encoding in forms]


def text_form(raw: bytes | None) -> tuple[str | None, str | None]:
    """Return (text, encoding) for bytes, without loss; see the module's docstring.

    Both are None for null.
    """
    if raw is None:
        return None, None
    try:
        return raw.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace"), "escaped"


def add_binary(row: Row, name: str, raw: bytes | None) -> None:
    """Add the columns of a key or value to a row: as text, the text's encoding, as base64."""
    row[name], row[f"{name}_encoding"] = text_form(raw)
    row[f"{name}_base64"] = None if raw is None else b2a_base64(raw, newline=False).decode("ascii")


def header_row(name: str, value: bytes | None) -> Row:
    """Return a record header as a row with its name and the columns of its value."""
    row: Row = {"name": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")}
    add_binary(row, "value", value)
    return row


def parse_decoded(text: bytes | None) -> object:
    """Return the JSON value that a decoder's text has, the text itself if it is not JSON.

    None without a text.
    """
    if text is None:
        return None
    from engine.json_text import read_json

    try:
        return read_json(text)
    except ValueError:
        return text.decode("utf-8", "replace")


def _parse_partition(path: str) -> tuple[str | None, int | None]:
    """Return (topic, partition) from the name of the segment's folder.

    Both are None if it is not named like a partition directory.
    """
    folder = path.rpartition("/")[0].rpartition("/")[2]
    topic, dash, number = folder.rpartition("-")
    is_number = number.isascii() and number.isdigit()
    return (topic, int(number)) if dash and topic and is_number else (None, None)
