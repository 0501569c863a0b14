"""Whole commands: how long `kctl` takes, beside Kafka's own tools; how quickly a cluster is there.

    python -m tests.perf.commands --address HOST:PORT [--kafka-topics "kafka-topics.sh"]
           [--kafka-start "COMMAND"] [--kafka-stop "COMMAND"] [--rounds 7]

`--address` is a broker that both list the topics of. `--kafka-start` starts a broker (with all that
it needs) and returns when its port is open, `--kafka-stop` ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.perf.ratios import Cost, machine_line, median, run_once

_KCTL = str(Path(sys.executable).parent / "kctl")


def _timed(command: list[str], rounds: int) -> Cost:
    run_once(command)
    return median([run_once(command) for _ in range(rounds)])


def _line(label: str, ours: Cost, theirs: Cost | None, wanted: str) -> str:
    if theirs is None:
        return f"| {label} | {ours.wall_s * 1000:.0f} ms | – | – | {wanted} |"
    ratio = ours.wall_s / theirs.wall_s
    return (
        f"| {label} | {ours.wall_s * 1000:.0f} ms | {theirs.wall_s * 1000:.0f} ms "
        f"| {ratio:.2f}x | {wanted} |"
    )


def _start_of_ours(folder: str) -> tuple[float, float]:
    """Return how long a start takes in seconds, and the megabytes that the idle broker holds."""
    data = ["--data", f"{folder}/{time.monotonic_ns()}"]
    began = time.perf_counter()
    subprocess.run(
        [_KCTL, "cluster", "start", "--port", "0", *data], check=True, capture_output=True
    )
    took_s = time.perf_counter() - began
    status = [_KCTL, "cluster", "status", "-o", "json", *data]
    pid = json.loads(subprocess.run(status, check=True, capture_output=True).stdout)["pids"][0]
    with open(f"/proc/{pid}/status") as lines:
        rss_kb = sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    subprocess.run([_KCTL, "cluster", "destroy", "-y", *data], check=True, capture_output=True)
    return took_s, rss_kb / 1024


def _start_of_theirs(start: str, stop: str) -> float:
    began = time.perf_counter()
    subprocess.run(shlex.split(start), check=True, capture_output=True)
    took_s = time.perf_counter() - began
    subprocess.run(shlex.split(stop), check=True, capture_output=True)
    return took_s


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--kafka-topics", default="")
    parser.add_argument("--kafka-start", default="")
    parser.add_argument("--kafka-stop", default="")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    # Compiled modules are kept, as they are wherever the package is installed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{machine_line()}\n\n| case | kctl | Kafka | ratio | wanted |\n|---|---|---|---|---|")
    print(_line("--help", _timed([_KCTL, "--help"], asked.rounds), None, "<= 100 ms"))
    listing = [_KCTL, "topics", "list", "-b", asked.address]
    theirs = None
    if asked.kafka_topics:
        tool = [*shlex.split(asked.kafka_topics), "--bootstrap-server", asked.address, "--list"]
        theirs = _timed(tool, max(asked.rounds // 2, 1))
    wanted = "<= 0.25x, <= 200 ms"
    print(_line("topics list", _timed(listing, asked.rounds), theirs, wanted))
    with tempfile.TemporaryDirectory() as folder:
        starts = sorted(_start_of_ours(folder) for _ in range(asked.rounds))
    ours_s, rss_mb = starts[len(starts) // 2]
    cost = Cost(ours_s, 0.0, rss_mb)
    other = None
    if asked.kafka_start and asked.kafka_stop:
        other = Cost(_start_of_theirs(asked.kafka_start, asked.kafka_stop), 0.0, 0.0)
    print(_line("a cluster's start to its first answer", cost, other, "<= 0.1x"))
    print(f"| idle broker's memory | {rss_mb:.0f} MB | | | <= 0.1x |")


if __name__ == "__main__":
    main()
