"""One dirty log, cleaned here and by a broker of Kafka: time, processor time, memory.

    python -m tests.perf.cleaner --libs DIR [--records 1000000] [--keys 1000000] [--folder DIR]
                                 [--rounds 3]

Ours is measured in plain Python and with compiled code, each round all in turn: medians are told.
`--libs` is a folder with Kafka's jars; without it only ours is measured. Kafka's time is from its
start to its cleaner's checkpoint, less that of a start with nothing to clean; its processor time is
that of its cleaner's thread.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from engine.host.real import RealFiles
from engine.log.cleaner.cleanable import find_cleanable_range
from engine.log.cleaner.cleaning import CleaningRun
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.log_facts import collect_cleanable_log
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadRequest, load_log
from engine.model import TopicPartition
from engine.native.clean_records import load_or_compile_cleaner
from engine.records.builder import BatchBuilder, BatchSettings
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.real_kafka import RealKafka, create_topic
from tests.perf.ratios import machine_line
from tests.unit.log.hooks import hooks_of

_KEY = TopicPartition("big", 0)
_START_MS = 1_767_225_600_000
_BATCH_RECORDS = 16
_VALUE_BYTES = 1000
SEGMENT_BYTES = 64 << 20
_CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, is_compacted=True, is_deleting=False)
_POLL_S = 0.02
_DEADLINE_S = 120.0
_CLOCK_TICKS = 100


class Measured(NamedTuple):
    """What a cleaning took."""

    seconds: float
    cpu_seconds: float
    memory_mb: int


def main() -> None:
    """Print a line for each side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--libs")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clean", nargs=3, metavar=("TIER", "SOURCE", "TARGET"))
    requested = parser.parse_args()
    if requested.clean:
        tier, *folders = requested.clean
        print(json.dumps(_clean_here(tier, *map(Path, folders))))
        return
    print(f"{machine_line()}\n\n| | time s | processor s | memory MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=requested.folder) as folder:
        source = Path(folder) / "source"
        write_log(source, requested.records, requested.keys)
        sides: dict[str, Callable[[Path], Measured]] = {
            f"ours, {tier}": partial(_clean_beside, tier, source) for tier in ("plain", "compiled")
        }
        if requested.libs:
            sides["Kafka"] = lambda target: _clean_by_kafka(source, target, requested.libs)
        rounds: dict[str, list[Measured]] = {name: [] for name in sides}
        for number in range(requested.rounds):
            for name, clean in sides.items():
                target = Path(folder) / f"{name[-5:]}-{number}"
                rounds[name].append(clean(target))
                shutil.rmtree(target, ignore_errors=True)
        for name, found in rounds.items():
            print(_line(name, _median(found)), flush=True)


def _median(found: list[Measured]) -> Measured:
    seconds, cpu_seconds, memory_mb = (
        statistics.median(column) for column in zip(*found, strict=True)
    )
    return Measured(seconds, cpu_seconds, int(memory_mb))


def _clean_beside(tier: str, source: Path, target: Path) -> Measured:
    """Clean in a process of its own, whose memory is then that of the cleaning."""
    words = ["-m", "tests.perf.cleaner", "--clean", tier, str(source), str(target)]
    done = subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return Measured(*json.loads(done.stdout))


def _line(name: str, measured: Measured) -> str:
    seconds, cpu_seconds, memory_mb = measured
    return f"| {name} | {seconds:.1f} | {cpu_seconds:.1f} | {memory_mb} |"


def _opened(folder: Path) -> LocalLog:
    request = LoadRequest(
        str(folder), _KEY, _CONFIG, _START_MS, recovery_point=1 << 60, was_stopped_cleanly=True
    )
    return load_log(RealFiles(), request, hooks_of())[0]


def write_log(folder: Path, record_count: int, key_count: int) -> None:
    folder.mkdir()
    log, source = _opened(folder), random.Random(1)
    noise = source.randbytes(8 * _VALUE_BYTES)
    for first in range(0, record_count, _BATCH_RECORDS):
        builder = BatchBuilder(BatchSettings())
        for number in range(first, first + _BATCH_RECORDS):
            at = source.randrange(7 * _VALUE_BYTES)
            key = b"key-%08d" % source.randrange(key_count)
            builder.append(_START_MS + number // 10, key, noise[at : at + _VALUE_BYTES])
        log.append_as_leader(memoryview(builder.build()), 0, _START_MS)
    log.roll(_START_MS)
    log.close(_START_MS)


def _clean_here(tier: str, source: Path, folder: Path) -> Measured:
    assert tier == "plain" or load_or_compile_cleaner(), "there is no compiled code yet"
    shutil.copytree(source, folder)
    log = _opened(folder)
    facts = collect_cleanable_log(log, high_watermark=log.log_end_offset, checkpoint_offset=None)
    before, before_cpu = time.perf_counter(), time.process_time()
    run = CleaningRun(
        RealFiles(),
        log,
        find_cleanable_range(facts, _CONFIG, _START_MS),
        CleaningSettings(),
        now_ms=_START_MS,
    )
    run.clean_inline()
    seconds, cpu_seconds = time.perf_counter() - before, time.process_time() - before_cpu
    memory_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Measured(seconds, cpu_seconds, memory_kb >> 10)


def _clean_by_kafka(source: Path, data: Path, libs: str) -> Measured:
    cluster = EmbeddedCluster(data)
    cluster.start(log_cleaner_enable="false")
    create_topic(
        cluster.address, "big", cleanup_policy="compact", segment_bytes=str(_CONFIG.segment_bytes)
    )
    cluster.stop()
    kafka = RealKafka(libs, data, log_cleaner_backoff_ms="100")
    idle_seconds = _timed_start(kafka)
    kafka.stop()
    log = data / "broker-1" / "big-0"
    metadata = (log / "partition.metadata").read_bytes()
    shutil.rmtree(log)
    shutil.copytree(source, log)
    (log / "partition.metadata").write_bytes(metadata)
    before = time.perf_counter()
    kafka.start()
    checkpoint = data / "broker-1" / "cleaner-offset-checkpoint"
    while "big 0 " not in (checkpoint.read_text() if checkpoint.exists() else ""):
        assert time.perf_counter() - before < _DEADLINE_S, "Kafka has not cleaned the log"
        time.sleep(_POLL_S)
    seconds = time.perf_counter() - before - idle_seconds
    measured = Measured(max(seconds, 0.0), *_of_cleaner(kafka))
    kafka.stop()
    cluster.destroy()
    return measured


def _timed_start(kafka: RealKafka) -> float:
    before = time.perf_counter()
    kafka.start()
    return time.perf_counter() - before


def _of_cleaner(kafka: RealKafka) -> tuple[float, int]:
    """Return the processor time of the cleaner's threads, and the process's most memory in MB."""
    process = Path(f"/proc/{kafka.pid}")
    ticks = 0
    for task in (process / "task").iterdir():
        name, _, fields = (task / "stat").read_text().rpartition(")")
        if "kafka-log-clean" in name:
            user, system = fields.split()[11:13]
            ticks += int(user) + int(system)
    memory_kb = next(
        int(line.split()[1])
        for line in (process / "status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return ticks / _CLOCK_TICKS, memory_kb >> 10


if __name__ == "__main__":
    main()
