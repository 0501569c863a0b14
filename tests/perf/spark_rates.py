"""What one core does of the work of Spark's tasks: `python -m tests.perf.spark_rates`.

The same functions as in tasks, over a generated segment, without Spark. Times are of the CPU, of
the second of two passes: the first one compiles.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from engine.analysis.columns import VIEWS, choose_columns
from engine.analysis.export_task import ExportJob, run_export_task
from engine.analysis.record_batches import ViewReader
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.real import RealFiles
from engine.host.source_files import SourceFiles
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings

_BATCH_RECORDS = 100
_TIME_MS = 1_780_000_000_000


def write_segment(folder: Path, value_bytes: int, total_bytes: int) -> None:
    """Write a segment of batches that differ in their offsets alone, which no checksum covers."""
    random = Random(7)
    builder = BatchBuilder(BatchSettings(base_offset=0, leader_epoch=0))
    for number in range(_BATCH_RECORDS):
        value = random.randbytes(value_bytes // 2).hex().encode()
        builder.append(_TIME_MS + number, b"key-%08d" % random.randrange(10_000_000), value)
    batch = bytes(builder.build())
    with (folder / SegmentFileName(0, FileKind.LOG).name).open("wb") as log:
        for number in range(total_bytes // len(batch)):
            log.write((number * _BATCH_RECORDS).to_bytes(8) + batch[8:])


def _read(view: str, *names: str) -> Callable[[list[Split], str], None]:
    def read(splits: list[Split], _out: str) -> None:
        reader = ViewReader(
            SourceFiles(), view, choose_columns(VIEWS[view], list(names)), control=False
        )
        for split in splits:
            for _ in reader.batches_of(split):
                pass

    return read


def _export(splits: list[Split], out: str) -> None:
    columns = tuple(column.name for column in VIEWS["records"])
    run_export_task(ExportJob(out, columns, include_control=False), splits, "part")


WORK: dict[str, Callable[[list[Split], str], None]] = {
    "headers: topic": _read("records", "topic"),
    "keys and sizes": _read("records", "key", "value_size"),
    "all columns": _read("records", *(column.name for column in VIEWS["records"])),
    "export, all columns": _export,
}


def main() -> None:
    """Print MB for each CPU second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    options = parser.parse_args()
    for value_bytes in (1000, 80):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root) / "logs" / "t-0"
            folder.mkdir(parents=True)
            write_segment(folder, value_bytes, options.megabytes << 20)
            splits = plan_splits(RealFiles(), [f"{root}/logs"], Selection())
            for name, work in WORK.items():
                work(splits, root)
                started = time.process_time()
                work(splits, root)
                rate = options.megabytes / (time.process_time() - started)
                print(f"values of {value_bytes} bytes, {name}: {rate:.0f} MB a CPU-s")


if __name__ == "__main__":
    main()
