"""What kctl does of log directories, on Spark and without, beside other ways, in one run.

    python -m tests.perf.spark_speed FOLDER [--gigabytes 2] [--rounds 3] [--only NAME …]

FOLDER gets the data, made once, and what is exported. Each case
prints a line; "over the start" is less what the same command takes of a directory of one batch.
Commands of a case run in turn, `--rounds` times after one run that is not counted; the least of
each is taken, as whatever else the machine does only adds.

| case | what is compared |
|---|---|
| start | commands on one batch: start and end of Spark, and the first query without it; |
| | and one row through one task, which no command on Spark can leave out |
| export | CPU-s a GB over the start: one process, Spark's own writer |
| cores | the export on `local[1]` and `local[2]`, wall over the start; one process and two |
| decode | one process: columns by compiled code, by plain Python, aiokafka's records into Arrow; |
| | and what none of them can leave out: reading, checksums, one copy |
| headers | `select topic, count(*)` of `--large DIR`, of `tests.perf.log_directories` |
| keys | the report `keys` on Spark and Spark's own groupBy, CPU over the start |
| small | 10,000 segments of 10 KB: the export and one process |
| memory | the export and all reports of `--large DIR`: the most memory of all processes (PSS) |
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from engine.analysis.columns import VIEWS, choose_columns
from engine.analysis.record_batches import ViewReader
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.real import RealFiles
from engine.host.source_files import SourceFiles
from engine.limits import ARROW_BATCH_BYTES, RUN_CHUNK_BYTES
from engine.log.batch_scan import scan_batches
from engine.native.batch_runs import RunTier
from engine.native.compiled_runs import load_or_compile_runs
from engine.records.batch_header import CHECKED_FROM, HEADER_BYTES
from engine.records.codec import Codec
from engine.records.crc import crc32c
from tests.perf.log_directories import Topic, write_partition
from tests.perf.ratios import Cost, machine_line, run_once
from tests.perf.spark_rates import write_segment as write_random

_KCTL: Final = str(Path(sys.executable).parent / "kctl")
_DECODED: Final = ("key", "value", "offset", "timestamp")
_DECODE_BYTES: Final = 256 << 20
_SMALL_SEGMENTS, _SMALL_BYTES = 10_000, 10_000
_PARTITIONS: Final = 8
_POLL_S: Final = 0.2


class Bench:
    """Cases over the data of a folder."""

    def __init__(self, folder: Path, gigabytes: float, rounds: int, large: Path | None) -> None:
        self._folder = folder
        self._gigabytes = gigabytes
        self._rounds = rounds
        self._large = large
        self._exports = 0

    def start(self) -> None:
        """Time commands that read one batch."""
        tiny = str(self._tiny())
        query = "select topic, count(*) from records group by topic"
        export, sql, local, nothing, stock = self._least(
            lambda: self._export(tiny),
            lambda: [_KCTL, "spark-sql", "--engine", "spark", query, tiny],
            lambda: [_KCTL, "spark-sql", "--engine", "local", query, tiny],
            lambda: self._peer("nothing"),
            lambda: self._peer("stock-nothing"),
        )
        _line("spark-export", export, "<= 7 CPU-s, <= 5 s")
        _line("spark-sql --engine spark", sql, "<= 7 CPU-s, <= 5 s")
        _line("spark-sql --engine local", local, "<= 0.8 s")
        _line("one row through one task, kctl's start of Spark", nothing, "")
        _line("one row through one task, PySpark's start", stock, "")

    def export(self) -> None:
        """Compare the export with one process and with Spark's own writer."""
        tiny, data = str(self._tiny()), str(self._records())
        none, ours, one_process = self._least(
            lambda: self._export(tiny),
            lambda: self._export(data),
            lambda: self._peer("one-process", data, self._out()),
        )
        (writer_none,) = self._least(lambda: self._peer("spark-writer", tiny, self._out()))
        writer = run_once(self._peer("spark-writer", data, self._out()), waits_for_orphans=True)
        ours_s = (ours.cpu_s - none.cpu_s) / self._gigabytes
        peer_s = one_process.cpu_s / self._gigabytes
        writer_s = (writer.cpu_s - writer_none.cpu_s) / self._gigabytes
        print(f"| export, CPU-s a GB over the start | {ours_s:.2f} | <= 1.5 |")
        print(f"| one process / export, CPU | {peer_s:.2f}, {peer_s / ours_s:.2f}x | >= 0.8x |")
        print(
            f"| Spark's writer / export, CPU | {writer_s:.1f}, {writer_s / ours_s:.1f}x | >= 3x |"
        )

    def cores(self) -> None:
        """Compare one core with two."""
        tiny, data = str(self._tiny()), str(self._records())
        one, two, none, process, processes = self._least(
            lambda: self._export(data, "--master", "local[1]"),
            lambda: self._export(data, "--master", "local[2]"),
            lambda: self._export(tiny),
            lambda: self._peer("one-process", data, self._out()),
            lambda: self._peer("two-processes", data, self._out()),
        )
        ratio = (one.wall_s - none.wall_s) / (two.wall_s - none.wall_s)
        print(f"| local[1] / local[2], wall over the start | {ratio:.2f}x | >= 1.7x |")
        ratio = process.wall_s / processes.wall_s
        print(f"| one process / two processes, without Spark | {ratio:.2f}x | |")

    def decode(self) -> None:
        """Compare compiled code, plain Python and aiokafka in this process."""
        for value_bytes, wanted in ((1000, ">= 12x, >= 5x"), (80, ">= 25x, >= 5x")):

            def write(home: Path, value_bytes: int = value_bytes) -> None:
                write_random(home, value_bytes, _DECODE_BYTES)

            root = self._data(f"decode-{value_bytes}-of-{_DECODE_BYTES >> 20}", write)
            fast, plain, aiokafka, floor = self._decode_rates(root)
            label = f"values of {value_bytes} bytes"
            print(
                f"| decode to Arrow, {label} | {fast:,.0f} MB a CPU-s; plain "
                f"{plain:,.0f}, {fast / plain:.1f}x; aiokafka {aiokafka:,.0f}, "
                f"{fast / aiokafka:.1f}x | {wanted} |"
            )
            print(
                f"| read, CRC and one copy alone, {label} | {floor:,.0f} MB a CPU-s; plain "
                f"{floor / plain:.1f}x, aiokafka {floor / aiokafka:.1f}x; decode is "
                f"{fast / floor:.2f} of it | |",
                flush=True,
            )

    def _decode_rates(self, root: Path) -> list[float]:
        """Return MB for each CPU second: compiled code, plain Python, aiokafka, the floor."""
        splits = plan_splits(RealFiles(), [str(root)], Selection())
        path = splits[0].path
        batches = _places(path)
        assert load_or_compile_runs()
        compiled = RunTier.code

        def plain() -> None:
            RunTier.code = None
            _decode(splits)
            RunTier.code = compiled

        seconds = self._least_cpu_s(
            lambda: _decode(splits), plain, lambda: _aiokafka(path), lambda: _floor(path, batches)
        )
        return [_DECODE_BYTES / 1e6 / least for least in seconds]

    def headers(self) -> None:
        """Time a query that headers answer."""
        large = str(self._needed_throttle())
        query = "select topic, count(*) from records group by topic"
        (cost,) = self._least(lambda: [_KCTL, "spark-sql", "--engine", "local", query, large])
        _line("select topic, count(*), headers alone", cost, "<= 1 s")

    def keys(self) -> None:
        """Compare the report `keys` with Spark's own groupBy."""
        tiny, data = str(self._tiny()), str(self._records())
        report = [_KCTL, "spark-report", "keys", "--engine", "spark"]
        ours, ours_none, peer, peer_none = self._least(
            lambda: [*report, data],
            lambda: [*report, tiny],
            lambda: self._peer("spark-keys", data),
            lambda: self._peer("spark-keys", tiny),
        )
        ours_s, peer_s = ours.cpu_s - ours_none.cpu_s, peer.cpu_s - peer_none.cpu_s
        print(
            f"| keys, CPU-s over the start | {ours_s:.2f}; groupBy {peer_s:.2f}, "
            f"{peer_s / ours_s:.2f}x | >= 1.4x |"
        )

    def small(self) -> None:
        """Compare the export of many small segments with one process."""
        tiny, data = str(self._tiny()), str(self._segments())
        ours, none, peer = self._least(
            lambda: self._export(data),
            lambda: self._export(tiny),
            lambda: self._peer("one-process", data, self._out()),
        )
        ours_s = ours.cpu_s - none.cpu_s
        print(
            f"| 10,000 segments of 10 KB, CPU-s over the start | {ours_s:.1f}; one process "
            f"{peer.cpu_s:.1f}, {ours_s / peer.cpu_s:.2f}x | <= 1.5x |"
        )

    def memory(self) -> None:
        """Watch the memory of the export and of all reports."""
        large = str(self._needed_throttle())
        for label, command in (
            ("export", self._export(large)),
            ("all reports, Spark", [_KCTL, "spark-report", "all", "--engine", "spark", large]),
            ("all reports, local", [_KCTL, "spark-report", "all", "--engine", "local", large]),
        ):
            took_s, most_mb = _most_memory(command)
            print(f"| {label} | {took_s:.0f} s, {most_mb:,.0f} MB | <= 3,000 MB |", flush=True)

    def _least(self, *commands: Callable[[], list[str]]) -> list[Cost]:
        """Run commands in turn; return the least of each."""
        costs: list[list[Cost]] = [[] for _ in commands]
        for _ in range(self._rounds + 1):
            for made, command in zip(costs, commands, strict=True):
                made.append(run_once(command(), waits_for_orphans=True))
        return [Cost(*(min(column) for column in zip(*made[1:], strict=True))) for made in costs]

    def _least_cpu_s(self, *works: Callable[[], None]) -> list[float]:
        """Do works in turn; return the least CPU time of each."""
        spent: list[list[float]] = [[] for _ in works]
        for _ in range(self._rounds + 1):
            for times, work in zip(spent, works, strict=True):
                began = time.process_time()
                work()
                times.append(time.process_time() - began)
        return [min(times[1:]) for times in spent]

    def _export(self, data: str, *options: str) -> list[str]:
        return [_KCTL, "spark-export", *options, "--out", self._out(), data]

    def _peer(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tests.perf.spark_peers", *arguments]

    def _out(self) -> str:
        """Return a folder that is not there, with the one before it deleted."""
        shutil.rmtree(self._folder / f"out-{self._exports}", ignore_errors=True)
        self._exports += 1
        out = self._folder / f"out-{self._exports}"
        shutil.rmtree(out, ignore_errors=True)
        return str(out)

    def _needed_throttle(self) -> Path:
        if self._large is None:
            raise SystemExit("this case needs --large DIR")
        return self._large

    def _tiny(self) -> Path:
        return self._data("tiny", lambda home: write_random(home, 1000, 110_000))

    def _records(self) -> Path:
        size = int(self._gigabytes * 1e9 / _PARTITIONS)
        topic = Topic("t", _PARTITIONS, 1, 1000, 16, Codec.NONE)

        def write(home: Path) -> None:
            home.rmdir()
            write_partition(home, topic, int(home.name[2:]), size)

        return self._data("records", write, partitions=_PARTITIONS)

    def _segments(self) -> Path:
        def write(home: Path) -> None:
            for number in range(_SMALL_SEGMENTS // 100):
                write_random(home, 90, _SMALL_BYTES + 1_000)
                (home / f"{0:020}.log").rename(home / f"{number * 100 + 1_000_000:020}.log")

        return self._data("segments", write, partitions=100)

    def _data(self, name: str, write: Callable[[Path], None], partitions: int = 1) -> Path:
        root = self._folder / name
        for index in range(0 if root.exists() else partitions):
            home = root / f"t-{index}"
            home.mkdir(parents=True)
            write(home)
        return root


def _decode(splits: Sequence[Split]) -> None:
    reader = ViewReader(
        SourceFiles(), "records", choose_columns(VIEWS["records"], list(_DECODED)), control=False
    )
    for split in splits:
        for _ in reader.batches_of(split):
            pass


def _places(segment: str) -> list[tuple[int, int]]:
    """Return where the batches of a segment start and end."""
    with closing(RealFiles().open(segment)) as file:
        return [(at, at + len(view)) for at, view in scan_batches(file).iter_frames()]


def _floor(segment: str, batches: list[tuple[int, int]]) -> None:
    """Do what no way from a segment to Arrow can leave out, at its best.

    Read it in chunks that stay in the cache, compute the CRC of each batch, and copy its records
    once, to memory that is there. There is one copy a batch, not one a key and a value.
    """
    chunk, target = bytearray(RUN_CHUNK_BYTES), bytearray(ARROW_BATCH_BYTES + RUN_CHUNK_BYTES)
    window, column = memoryview(chunk), memoryview(target)
    used = start = end = 0
    with closing(RealFiles().open(segment)) as file:
        for batch_start, batch_end in batches:
            if batch_end > end:
                start = batch_start
                end = start + file.read_into(start, window)
            records = window[batch_start - start + HEADER_BYTES : batch_end - start]
            crc32c(window[batch_start - start + CHECKED_FROM : batch_end - start])
            if used > ARROW_BATCH_BYTES:
                used = 0
            column[used : used + len(records)] = records
            used += len(records)


def _aiokafka(segment: str) -> None:
    """Read a segment by aiokafka's compiled records, and make Arrow batches of them."""
    import pyarrow as pa
    from aiokafka.record.memory_records import MemoryRecords

    records = MemoryRecords(Path(segment).read_bytes())
    while records.has_next():
        batch = records.next_batch()
        assert batch is not None and batch.validate_crc()
        rows = [(row.key, row.value, row.offset, row.timestamp) for row in batch]
        pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind)
                for column, kind in zip(
                    zip(*rows, strict=True),
                    (pa.binary(), pa.binary(), pa.int64(), pa.timestamp("ms")),
                    strict=True,
                )
            ],
            names=list(_DECODED),
        )


def _most_memory(command: list[str]) -> tuple[float, float]:
    """Run a command; return how long it took, and the most memory of it and its children in MB."""
    began_s = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    most_kb = 0
    is_over = threading.Event()

    def watch() -> None:
        nonlocal most_kb
        while not is_over.wait(_POLL_S):
            most_kb = max(most_kb, _pss_kb(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    is_over.set()
    watcher.join()
    if code:
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return time.monotonic() - began_s, most_kb / 1000


def _pss_kb(process_id: int) -> int:
    """Return the proportional memory of a process and of all below it, Spark's JVM among them."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    total, left = 0, [process_id]
    while left:
        counted = left.pop()
        left += children.get(counted, ())
        with suppress(OSError):
            for line in Path(f"/proc/{counted}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def _line(label: str, cost: Cost, wanted: str) -> None:
    print(f"| {label} | {cost.wall_s:.2f} s, {cost.cpu_s:.2f} CPU-s | {wanted} |", flush=True)


def main() -> None:
    """Run the cases of the command line."""
    cases = ("start", "export", "cores", "decode", "headers", "keys", "small", "memory")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=Path)
    parser.add_argument("--only", nargs="+", choices=cases, default=cases)
    options = parser.parse_args()
    print(machine_line(), flush=True)
    bench = Bench(options.folder, options.gigabytes, options.rounds, options.large)
    for case in options.only:
        getattr(bench, case)()


if __name__ == "__main__":
    main()
