"""Writes a broker's log directory of any size: skewed, of all codecs, in transactions, damaged.

    python -m tests.perf.log_directories FOLDER --gigabytes 10 [--undamaged]

| topic | partitions, the first the largest | records | batches |
|---|---|---|---|
| orders | 8 | values of 1 KB | 16 records, not compressed |
| clicks | 4 | values of 80 bytes | 200 records, zstd |
| events | 4 | values of 300 bytes | 100 records, lz4 |
| metrics | 2 | values of 150 bytes | 100 records, snappy |
| audit | 1 | values of 500 bytes | 50 records, gzip |
| payments | 2 | values of 400 bytes | transactions of two batches, one of eight aborted |

Each topic has its share of the bytes. 32 batches of a topic are built and repeated, at later
offsets and times. Keys are skewed: a tenth of them has most records. Damage: one byte of a record
in the middle of the second segment of orders-0, and a torn last batch in clicks-0.
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

from engine.host.real import RealFiles
from engine.log.batch_scan import scan_batches
from engine.log.index_builder import IndexBuilder
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.records.crc import crc32c
from tests.perf.segments import value_of

SEGMENT_BYTES = 256 << 20
START_MS, BATCH_MS = 1_767_225_600_000, 40
VARIANTS, KEYS = 32, 50_000
_CRC, _TIMES, _CHECKED_FROM = 17, 27, 21
_ABORTED_OF = 8
_PRODUCERS = 16
_IN_RECORDS = 300


class Topic(NamedTuple):
    """A topic's share of the bytes, and the form of its batches."""

    name: str
    partitions: int
    share: float
    value_bytes: int
    batch_records: int
    codec: Codec
    is_transactional: bool = False


TOPICS = (
    Topic("orders", 8, 0.5, 1000, 16, Codec.NONE),
    Topic("clicks", 4, 0.15, 80, 200, Codec.ZSTD),
    Topic("events", 4, 0.15, 300, 100, Codec.LZ4),
    Topic("metrics", 2, 0.08, 150, 100, Codec.SNAPPY),
    Topic("audit", 1, 0.04, 500, 50, Codec.GZIP),
    Topic("payments", 2, 0.08, 400, 25, Codec.NONE, is_transactional=True),
)


def write_log_dir(folder: Path, total_bytes: int, *, is_damaged: bool) -> None:
    """Write a log directory of about `total_bytes`; the folder must not exist."""
    for topic in TOPICS:
        weights = [1 / (1 + index) for index in range(topic.partitions)]
        for index, weight in enumerate(weights):
            size = int(total_bytes * topic.share * weight / sum(weights))
            write_partition(folder / f"{topic.name}-{index}", topic, index, size)
    if is_damaged:
        _damage(folder)


def write_partition(folder: Path, topic: Topic, index: int, total_bytes: int) -> None:
    """Write the segments of a partition with their indexes."""
    folder.mkdir(parents=True)
    chance = random.Random(f"{topic.name}-{index}")
    batches = _transactions(topic, chance) if topic.is_transactional else _plain(topic, chance)
    written = offset = 0
    aborted: list[AbortedTransaction] = []
    while written < total_bytes:
        base, size = offset, 0
        limit = min(SEGMENT_BYTES, total_bytes - written)
        with (folder / SegmentFileName(base, FileKind.LOG).name).open("wb") as log:
            while size < limit:
                batch, records, ended = next(batches)
                batch[:8] = offset.to_bytes(8)
                size += log.write(batch)
                if ended is not None:
                    aborted.append(_aborted(ended, offset))
                offset += records
        _write_indexes(folder, base, [entry for entry in aborted if entry.last_offset >= base])
        written += size


class _Ended(NamedTuple):
    producer_id: int
    record_count: int


def _aborted(ended: _Ended, marker_offset: int) -> AbortedTransaction:
    first = marker_offset - ended.record_count
    return AbortedTransaction(ended.producer_id, first, marker_offset, first)


def _plain(topic: Topic, chance: random.Random) -> Iterator[tuple[bytearray, int, None]]:
    variants = [_batch(topic, chance, BatchSettings(codec=topic.codec)) for _ in range(VARIANTS)]
    for number in count():
        batch = variants[number % VARIANTS]
        _set_time(batch, START_MS + number * BATCH_MS)
        yield batch, topic.batch_records, None


def _transactions(
    topic: Topic, chance: random.Random
) -> Iterator[tuple[bytearray, int, _Ended | None]]:
    """Yield two batches and a marker for each transaction of one producer after the other."""
    variants = [
        _batch(
            topic,
            chance,
            BatchSettings(
                codec=topic.codec,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=part * topic.batch_records,
                is_transactional=True,
            ),
        )
        for producer_id in range(_PRODUCERS)
        for part in range(2)
    ]
    for number in count():
        time_ms, producer_id = START_MS + number * BATCH_MS, number % _PRODUCERS
        for part in range(2):
            batch = variants[2 * producer_id + part]
            _set_time(batch, time_ms)
            yield batch, topic.batch_records, None
        is_aborted = chance.randrange(_ABORTED_OF) == 0
        kind = ControlType.ABORT if is_aborted else ControlType.COMMIT
        marker = build_marker(
            EndTransactionMarker(kind, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp_ms=time_ms,
            leader_epoch=0,
        )
        yield marker, 1, _Ended(producer_id, 2 * topic.batch_records) if is_aborted else None


def _batch(topic: Topic, chance: random.Random, settings: BatchSettings) -> bytearray:
    builder = BatchBuilder(settings._replace(leader_epoch=0))
    for number in range(topic.batch_records):
        key = b"key-%07d" % int(KEYS * chance.random() ** 4)
        value = value_of(chance.randrange(1 << 30), topic.value_bytes)
        builder.append(START_MS + number, key, value)
    return builder.build()


def _set_time(batch: bytearray, time_ms: int) -> None:
    base_ms, max_ms = struct.unpack_from(">qq", batch, _TIMES)
    struct.pack_into(">qq", batch, _TIMES, time_ms, time_ms + max_ms - base_ms)
    struct.pack_into(">I", batch, _CRC, crc32c(memoryview(batch)[_CHECKED_FROM:]))


def _write_indexes(folder: Path, base_offset: int, aborted: list[AbortedTransaction]) -> None:
    builder = IndexBuilder(base_offset)
    path = folder / SegmentFileName(base_offset, FileKind.LOG).name
    with closing(RealFiles().open(str(path))) as file:
        for position, batch in scan_batches(file):
            builder.add_batch(position, batch.last_offset, batch.max_timestamp_ms)
    builder.finish()
    for kind, content in (
        (FileKind.INDEX, builder.index.encode()),
        (FileKind.TIMEINDEX, builder.time_index.encode()),
        (FileKind.TXNINDEX, encode_txn_index(aborted)),
    ):
        if content:
            (folder / SegmentFileName(base_offset, kind).name).write_bytes(content)


def _damage(folder: Path) -> None:
    segments = sorted((folder / "orders-0").glob("*.log"))
    path = segments[min(1, len(segments) - 1)]
    middle = path.stat().st_size // 2
    with closing(RealFiles().open(str(path))) as file:
        position = next(start for start, _ in scan_batches(file) if start >= middle)
    with path.open("r+b") as log:
        log.seek(position + _IN_RECORDS)
        byte = log.read(1)
        log.seek(position + _IN_RECORDS)
        log.write(bytes([byte[0] ^ 0x10]))
    with sorted((folder / "clicks-0").glob("*.log"))[-1].open("r+b") as log:
        log.truncate(log.seek(0, 2) - 100)


def main() -> None:
    """Write the directory of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--undamaged", action="store_true")
    options = parser.parse_args()
    write_log_dir(options.folder, int(options.gigabytes * 1e9), is_damaged=not options.undamaged)


if __name__ == "__main__":
    main()
