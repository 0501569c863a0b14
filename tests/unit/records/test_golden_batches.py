"""What real Kafka wrote: every batch reads, equals what a client read, and rebuilds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CorruptRecord
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, build_empty_batch, settings_of
from engine.records.codec import Codec
from engine.records.compression import compress, decompress
from engine.records.control import control_type, parse_marker
from engine.records.legacy import LegacyBatch
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.view import RecordBatch, batch_at, batches_in, size_at
from tests.golden_cases import (
    case,
    case_dir,
    expected_outputs,
    truth_files,
    truth_rows,
    unpacked,
)
from tests.unit.records.samples import WHOLE_CASES, golden_batches


@pytest.mark.parametrize("name", WHOLE_CASES)
def test_every_batch_is_whole_and_reads_the_same_every_way(name: str) -> None:
    for path, batch in golden_batches(name):
        where = f"{path} at {batch.position}"
        assert batch.is_crc_valid(), where
        found = batch.read_records()
        assert found == list(batch.records()) == list(batch.salvage_records()), where
        assert batch.record_count in (None, len(found)), where
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets)), where
        if found:
            assert batch.base_offset <= offsets[0] <= offsets[-1] <= batch.last_offset, where
        if isinstance(batch, LegacyBatch):
            assert all(record.is_crc_valid for record in found), where


def test_the_cases_hold_every_format_and_codec() -> None:
    seen = {(batch.magic, batch.codec) for name in WHOLE_CASES for _, batch in golden_batches(name)}
    legacy = {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}
    expected = {(magic, codec) for magic in (0, 1) for codec in legacy}
    assert seen == expected | {(2, codec) for codec in Codec}


def as_truth(topic: str, partition: int, record: Record) -> tuple[object, ...]:
    # A client shows 0 where there is no time.
    time = max(record.timestamp_ms, 0)
    label = record.timestamp_type.label
    return topic, partition, record.offset, time, label, record.key, record.value, record.headers


def truth_of(row: dict[str, Any]) -> tuple[object, ...]:
    headers = tuple((name, unpacked(value)) for name, value in row["headers"])
    plain = (row[name] for name in ("topic", "partition", "offset", "timestamp", "timestampType"))
    return *plain, unpacked(row["key"]), unpacked(row["value"]), headers


def client_records(name: str, topic: str) -> Iterator[tuple[object, ...]]:
    for path, batch in golden_batches(name):
        folder, _, partition = path.parent.name.rpartition("-")
        if folder == topic and not batch.is_control:
            for record in batch.records():
                yield as_truth(topic, int(partition), record)


@pytest.mark.parametrize("name", ["codecs", "formats", "plain", "stamps", "txn"])
def test_records_are_what_an_independent_client_read(name: str) -> None:
    files = [path for path in truth_files(name) if "read_uncommitted" in path.name]
    assert files
    for path in files:
        expected = sorted(map(truth_of, truth_rows(path)), key=lambda row: row[1:3])
        topic = path.name.partition(".")[0]
        assert sorted(client_records(name, topic), key=lambda row: row[1:3]) == expected


def rebuilt(batch: BatchView) -> bytes:
    """Return the batch built again from its records."""
    settings = settings_of(batch)
    if batch.record_count == 0:
        return bytes(
            build_empty_batch(
                settings, last_offset=batch.last_offset, max_timestamp_ms=batch.max_timestamp_ms
            )
        )
    # Under append time the producer's times still lie in the deltas: bring them out.
    inside = BatchView(memoryview(bytearray(batch.raw)))
    inside.patch(timestamp_type=TimestampType.CREATE_TIME)
    builder = BatchBuilder(settings)
    for record in inside.records():
        builder.append_record(record)
    return bytes(builder.build(last_offset=batch.last_offset))


@pytest.mark.parametrize("name", WHOLE_CASES)
def test_uncompressed_batches_are_rebuilt_to_the_same_bytes(name: str) -> None:
    for path, batch in golden_batches(name):
        if isinstance(batch, BatchView) and batch.codec is Codec.NONE:
            assert rebuilt(batch) == batch.raw, f"{path} at {batch.position}"


def compacted() -> Iterator[tuple[Path, BatchView]]:
    """Yield the batches that the real cleaner wrote."""
    for path in sorted(case_dir("compact").glob("after*/*/*.log")):
        data = memoryview(path.read_bytes())
        for batch in batches_in(data, allow_partial_tail=False):
            if isinstance(batch, BatchView):
                yield path, batch


def test_the_cleaners_batches_are_rebuilt_to_the_same_bytes() -> None:
    seen = set()
    for path, batch in compacted():
        seen.add((batch.codec, batch.has_delete_horizon, batch.record_count == 0))
        assert rebuilt(batch) == batch.raw, f"{path} at {batch.position}"
    assert seen >= {(Codec.NONE, True, False), (Codec.NONE, False, True), (Codec.ZSTD, True, False)}


def test_what_the_broker_compressed_is_compressed_to_the_same_bytes() -> None:
    for codec in (Codec.GZIP, Codec.LZ4):
        for path, batch in golden_batches("txn"):
            if isinstance(batch, BatchView) and batch.codec is codec:
                plain = decompress(codec, batch.payload)
                assert compress(codec, plain) == batch.payload, f"{path} at {batch.position}"


def test_messages_are_rebuilt_to_the_same_bytes() -> None:
    for path, batch in golden_batches("formats"):
        if not isinstance(batch, LegacyBatch) or batch.codec is Codec.SNAPPY:
            continue  # snappy of another library compresses differently
        records = batch.read_records()
        settings = LegacySettings(
            magic=batch.magic,
            codec=batch.codec,
            timestamp_type=batch.timestamp_type,
            append_time_ms=batch.max_timestamp_ms,
            base_offset=records[0].offset,
        )
        assert build_messages(records, settings) == batch.raw, f"{path} at {batch.position}"


# What Kafka's tool prints of damaged files shows how far it came in each batch.

BATCH_LINE = re.compile(rb"(?:baseOffset|offset): .* position: (\d+) .* isvalid: (true|false)")
RECORD_LINE = re.compile(rb"\| offset: (-?\d+) .* keySize: (-?\d+) valueSize: (-?\d+)")
# A file's tail below this many bytes is not looked at by FileLogInputStream.
TAIL_BYTES = 17


def printed(output: bytes) -> list[tuple[object, ...]]:
    """Return the batches and records in an output."""
    found: list[tuple[object, ...]] = []
    for line in output.splitlines():
        if batch := BATCH_LINE.match(line):
            found.append((int(batch[1]), batch[2] == b"true"))
        elif record := RECORD_LINE.match(line):
            found.append(tuple(int(part) for part in record.groups()))
    return found


def walked(data: bytes) -> tuple[list[tuple[object, ...]], bool]:
    """Return the batches and records of a file as far as they come, and whether all did."""
    found: list[tuple[object, ...]] = []
    buffer, position = memoryview(data), 0
    try:
        while position < len(buffer) - TAIL_BYTES:
            size = size_at(buffer, position)
            if size is None or position + size > len(buffer):
                break
            batch = batch_at(buffer, position)
            _ = batch.timestamp_type, batch.max_timestamp_ms, batch.codec
            found.append((position, batch.is_crc_valid()))
            walk_records(batch, found)
            position += size
    except CorruptRecord:
        return found, False
    return found, True


def walk_records(batch: RecordBatch, found: list[tuple[object, ...]]) -> None:
    rows = batch.iter_messages() if isinstance(batch, LegacyBatch) else batch.records()
    for row in rows:
        found.append((row.offset, row.key_size, row.value_size))
        if isinstance(row, Record) and batch.is_control and control_type(row) in (0, 1):
            parse_marker(row)


def deep_dumps() -> Iterator[tuple[str, int, bytes]]:
    """Yield file, exit code and output of each dump of one damaged log with its records."""
    outputs = expected_outputs("corrupt")
    for run in case("corrupt")["invocations"]:
        options, name = run["args"][:-2], run["args"][-1]
        is_plain = options == ["--deep-iteration"] and name.endswith(".log") and "," not in name
        if run["kafka"] == "3.9.1" and is_plain and not name.startswith("names/"):
            yield name, run["exit"], outputs[run["stdout"]]


def test_damaged_logs_are_read_as_far_as_kafka_reads_them() -> None:
    folder, count = case_dir("corrupt"), 0
    for name, code, output in deep_dumps():
        found, is_whole = walked((folder / name).read_bytes())
        assert found == printed(output), name
        assert is_whole is (code == 0), name
        count += 1
    assert count > 100
