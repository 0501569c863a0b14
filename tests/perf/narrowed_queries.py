"""What conditions on offset and time save: bytes read and CPU of queries over one partition.

`python -m tests.perf.narrowed_queries FOLDER` writes 16 segments of 128 MiB into an empty folder:
values of 1000 bytes that do not compress, batches of 16 records, 10 ms between two records and
each up to 200 ms earlier or later. Then it runs each query.
"""

from __future__ import annotations

import random
import sys
import time
from contextlib import closing
from pathlib import Path

from engine.analysis.local_query import run_local_query
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from engine.log.batch_scan import scan_batches
from engine.log.index_builder import IndexBuilder
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings

SEGMENTS, SEGMENT_BYTES, BATCH_RECORDS = 16, 128 << 20, 16
INDEX_INTERVAL_BYTES = 4096
START_MS, STEP_MS, DISORDER_MS = 1_767_225_600_000, 10, 200
QUERIES = (
    "offset between 1000000 and 1000099",
    "timestamp >= '2026-01-01T05:45:00Z'",
    "timestamp between '2026-01-01T03:00:00Z' and '2026-01-01T03:05:00Z'",
    "timestamp < '2026-01-01T00:10:00Z'",
    "true",
)


def write_log(folder: Path) -> None:
    """Write the segments of a partition with their indexes."""
    chance = random.Random(1)
    values = [chance.randbytes(1000) for _ in range(64)]
    folder.mkdir(parents=True)
    offset = 0
    for _ in range(SEGMENTS):
        base, size = offset, 0
        path = folder / SegmentFileName(base, FileKind.LOG).name
        with path.open("wb") as file:
            while size < SEGMENT_BYTES:
                batch = _batch(chance, offset, values)
                size += file.write(batch)
                offset += BATCH_RECORDS
        _write_indexes(folder, base)


def _batch(chance: random.Random, offset: int, values: list[bytes]) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=offset, leader_epoch=0))
    for number in range(offset, offset + BATCH_RECORDS):
        time_ms = START_MS + number * STEP_MS + chance.randint(-DISORDER_MS, DISORDER_MS)
        builder.append(time_ms, b"k%d" % (number % 1000), values[number % 64])
    return bytes(builder.build())


def _write_indexes(folder: Path, base_offset: int) -> None:
    builder = IndexBuilder(base_offset, INDEX_INTERVAL_BYTES, skips_disorder=True)
    path = folder / SegmentFileName(base_offset, FileKind.LOG).name
    with closing(RealFiles().open(str(path))) as file:
        for position, batch in scan_batches(file):
            builder.add_batch(position, batch.last_offset, batch.max_timestamp_ms)
    builder.finish()
    index = folder / SegmentFileName(base_offset, FileKind.INDEX).name
    index.write_bytes(builder.index.encode())
    times = folder / SegmentFileName(base_offset, FileKind.TIMEINDEX).name
    times.write_bytes(builder.time_index.encode())


def _read_bytes() -> int:
    counters = Path("/proc/self/io").read_text()
    return int(counters.partition("rchar: ")[2].split()[0])


def main() -> None:
    """Write the log and print a line for each query."""
    folder = Path(sys.argv[1])
    if not folder.exists():
        write_log(folder / "t-0")
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    run_local_query("select 1", splits, control=False, max_rows=0)
    for condition in QUERIES:
        query = f"select count(*) n, sum(value_size) s from records where {condition}"
        read, cpu_s = _read_bytes(), time.process_time()
        result = run_local_query(query, splits, control=False, max_rows=0)
        read, cpu_s = _read_bytes() - read, time.process_time() - cpu_s
        count = result.rows[0]["n"]
        sys.stdout.write(
            f"| {condition} | {count:,} | {read / 1e6:,.0f} MB | {cpu_s:.2f} CPU-s |\n"
        )


if __name__ == "__main__":
    main()
