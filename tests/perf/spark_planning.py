"""What the process of a command does and holds before tasks of Spark start, for many segments.

`python -m tests.perf.spark_planning --segments 1000000` plans over a listing that is made up: the
names and sizes of files, none of which is there. Times are of the CPU.
"""

from __future__ import annotations

import argparse
import posixpath
import resource
import time

from engine.analysis.splits import Selection, encode_splits, pack_splits, plan_reading
from engine.host.ports import FileMissing
from engine.host.real import RealFiles
from engine.naming import FileKind, SegmentFileName

_ROOT = "/listing"
_KINDS = (FileKind.LOG, FileKind.INDEX, FileKind.TIMEINDEX)
_SEGMENT_BYTES = 100 << 20
_SEGMENT_RECORDS = 100_000
_SIZES = {".log": _SEGMENT_BYTES, ".index": 204_800, ".timeindex": 307_200}


class MadeUpFiles(RealFiles):
    """A log directory of topics of ten partitions, each with as many segments."""

    def __init__(self, partition_count: int, segment_count: int) -> None:
        super().__init__()
        self._folders = {f"topic-{n // 10:05d}-{n % 10}" for n in range(partition_count)}
        self._names = sorted(
            SegmentFileName(n * _SEGMENT_RECORDS, kind).name
            for n in range(segment_count)
            for kind in _KINDS
        )

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._folders) if path == _ROOT else list(self._names)

    def is_dir(self, path: str) -> bool:
        return path == _ROOT or posixpath.basename(path) in self._folders

    def exists(self, path: str) -> bool:
        return self.is_dir(path)

    def is_link(self, path: str) -> bool:
        return False

    def size_bytes(self, path: str) -> int:
        return _SIZES[posixpath.splitext(path)[1]]

    def read_bytes(self, path: str) -> bytes:
        raise FileMissing(path)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Plan, pack and encode as an export does, and print what each step took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=1_000_000)
    parser.add_argument("--per-partition", type=int, default=100)
    parser.add_argument("--cores", type=int, default=800)
    options = parser.parse_args()
    files = MadeUpFiles(options.segments // options.per_partition, options.per_partition)
    started = time.process_time()
    print(f"before: {_peak_mb():.0f} MB")

    def report(step: str, count: int) -> None:
        print(f"{step}: {count}, {time.process_time() - started:.1f} CPU-s, {_peak_mb():.0f} MB")

    plan = plan_reading(files, [_ROOT], Selection())
    report("pieces planned", len(plan.splits))
    groups = pack_splits(plan.splits, options.cores)
    report("tasks packed", len(groups))
    rows = [(number, encode_splits(group)) for number, group in enumerate(groups)]
    report("characters encoded", sum(len(text) for _, text in rows))


if __name__ == "__main__":
    main()
