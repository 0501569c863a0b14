"""Starting on, and first looking through, a log of many full segments after a clean stop.

    python -m tests.perf.sparse_logs [--segments 1000] [--libs DIR] [--folder DIR]

The .log files are sparse, 1 GiB each; their indexes are full, as index.interval.bytes=4096 leaves
them, and one file under many names. Ours is a process that only loads logs and applies retention.
`--libs`, jars of a Kafka release with a logging
library, asks a real broker too: what its log says of loading and of its first retention check.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.host.memory import SeededEntropy
from engine.host.real import RealClock, RealFiles
from engine.log.directory.clean_shutdown import FILE_NAME as CLEAN_SHUTDOWN
from engine.log.directory.clean_shutdown import CleanShutdown, encode_clean_shutdown
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.directory.offset_checkpoint import RECOVERY_POINTS, encode_offsets
from engine.log.log_config import LogConfig
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.tasks import InlineTasks, take_all
from engine.model import TopicPartition
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings
from tools.kafka_recovery.real_broker import RealBroker

_SEGMENT_BYTES = 1 << 30
_INTERVAL_BYTES = 4096
_RECORDS_A_SEGMENT = 1 << 24
_KEY = TopicPartition("t", 0)
_HOUR_MS = 3_600_000
_BROKER_LOGGING = """log4j.rootLogger=INFO, file
log4j.logger.kafka.log.LogManager=DEBUG
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={path}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%r %m%n
"""


def write_log_dir(folder: Path, segment_count: int) -> None:
    """Write a log directory as a clean stop leaves it."""
    partition = folder / str(_KEY)
    partition.mkdir(parents=True)
    now_ms = int(time.time() * 1000)
    entries = range(1, _SEGMENT_BYTES // _INTERVAL_BYTES)
    step = _RECORDS_A_SEGMENT // len(entries)
    index, times = struct.Struct(">ii"), struct.Struct(">qi")
    full = {
        FileKind.INDEX: b"".join(index.pack(n * step, n * _INTERVAL_BYTES) for n in entries),
        FileKind.TIMEINDEX: b"".join(times.pack(now_ms - _HOUR_MS + n, n * step) for n in entries),
    }
    for kind, content in full.items():
        (folder / kind.value[1:]).write_bytes(content)
    for number in range(segment_count):
        base = number * _RECORDS_A_SEGMENT
        for kind in full:
            os.link(folder / kind.value[1:], partition / SegmentFileName(base, kind).name)
        with (partition / SegmentFileName(base, FileKind.LOG).name).open("wb") as log:
            log.truncate(_SEGMENT_BYTES)
    for kind in full:
        (folder / kind.value[1:]).unlink()
    end = segment_count * _RECORDS_A_SEGMENT
    builder = BatchBuilder(BatchSettings(base_offset=end, leader_epoch=0))
    builder.append(now_ms, None, b"v")
    (partition / SegmentFileName(end, FileKind.LOG).name).write_bytes(bytes(builder.build()))
    for kind in full:
        (partition / SegmentFileName(end, kind).name).touch()
    (partition / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    ProducerSnapshots(RealFiles(), str(partition)).write_snapshot(end + 1, ())
    (folder / RECOVERY_POINTS).write_bytes(encode_offsets({_KEY: end + 1}))
    (folder / CLEAN_SHUTDOWN).write_bytes(encode_clean_shutdown(CleanShutdown()))


def measure(folder: Path) -> None:
    """Start on a directory and look through it, in this process; prints a line."""
    clock, files = RealClock(), RealFiles()
    manager = LogManager(
        files,
        LogManagerConfig([str(folder)], 1, "2Qe4I_4CSUacVq8ogDx2xw"),
        LogManagerPorts(
            tasks=InlineTasks(),
            clock=clock,
            entropy=SeededEntropy(1),
            lock=lambda path: lambda: None,
            config_of=lambda topic: LogConfig(),
            high_watermark_of=lambda key: 1 << 60,
            on_offline=print,
        ),
    )
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start_s = _timed(manager.start)
    check_s = _timed(lambda: take_all(manager.apply_retention()))
    again_s = _timed(lambda: take_all(manager.apply_retention()))
    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ((_, log),) = manager.logs.items()
    print(
        f"{len(log.segments)} segments: start {start_s:.3f} s, first retention check "
        f"{check_s * 1000:.1f} ms, second {again_s * 1000:.1f} ms, "
        f"{(after_kb - before_kb) / 1024:.0f} MiB more memory"
    )


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def ask_broker(libs: Path, folder: Path, port: int) -> None:
    """Start a real broker on the directory, and print what its log says."""
    with RealBroker(libs, folder.parent / "work", port, logging_rows=_BROKER_LOGGING) as broker:
        settings = {
            "log.initial.task.delay.ms": "2000",
            "offsets.topic.replication.factor": "1",
            "controlled.shutdown.enable": "false",
        }
        broker.start_and_stop(folder, settings, 300, serves_s=8)
        text = broker.log_text()
    loaded = re.search(r"Loaded \d+ logs in \d+ ?ms", text)
    print("broker:", loaded[0] if loaded else "no line of loading")
    moments = {
        name: [int(line.split()[0]) for line in text.splitlines() if name in line]
        for name in ("Beginning log cleanup", "Log cleanup completed")
    }
    begins, ends = moments.values()
    if begins and ends:
        print(f"broker: first retention check {ends[0] - begins[0]} ms")


def main() -> int:
    """Measure; with `--measure DIR` in this process, else in one of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=1000)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--libs", type=Path)
    parser.add_argument("--port", type=int, default=19192)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.measure is not None:
        measure(given.measure)
        return 0
    root = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        write_log_dir(root / "logs", given.segments)
        if given.libs is not None:
            ask_broker(given.libs, root / "logs", given.port)
            (root / "logs" / "meta.properties").unlink(missing_ok=True)
        subprocess.run(
            [sys.executable, "-m", "tests.perf.sparse_logs", "--measure", str(root / "logs")],
            check=True,
        )
    finally:
        shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
