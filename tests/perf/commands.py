"""Whole commands: how long `kctl` takes, beside kcat and Kafka's own tools.

    python -m tests.perf.commands --address HOST:PORT [--rounds 7] [--only produce]
           [--kcat kcat] [--kafka-topics "kafka-topics.sh"]
           [--kafka-producer "kafka-console-producer.sh"]
           [--kafka-start "COMMAND"] [--kafka-stop "COMMAND"]

`--address` is a broker that all of them talk to. A peer that is not named, or not there, is left
out. `--kafka-start` starts a broker (with all that it needs) and returns when its port is open,
`--kafka-stop` ends it. Commands of a case run in turn, so that what else the machine does meets
them all. What a case needs (topics, records) is made before, outside of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.perf.ratios import Cost, machine_line, median, run_once

_KCTL = str(Path(sys.executable).parent / "kctl")


class Place(NamedTuple):
    """Where cases run: the broker, the peers' commands by name, a folder for input."""

    address: str
    peers: dict[str, list[str]]
    folder: Path


class Case(NamedTuple):
    """One line of the report: our command, and the peers' that do the same."""

    label: str
    ours: list[str]
    wanted: str
    peers: Mapping[str, list[str]] = MappingProxyType({})
    stdin_path: str = os.devnull


def _kctl(place: Place, *words: str) -> list[str]:
    return [_KCTL, *words, "-b", place.address]


def _listing_cases(place: Place) -> list[Case]:
    theirs = {}
    if "kafka-topics" in place.peers:
        words = ["--bootstrap-server", place.address, "--list"]
        theirs["Kafka's tool"] = [*place.peers["kafka-topics"], *words]
    return [
        Case("--help", [_KCTL, "--help"], "<= 100 ms"),
        Case("topics list", _kctl(place, "topics", "list"), "<= 120 ms", theirs),
    ]


def _produce_cases(place: Place) -> list[Case]:
    path = place.folder / "lines"
    path.write_bytes(b"".join(b"%07d%s\n" % (n, b"x" * 92) for n in range(500_000)))
    keyed = place.folder / "keyed"
    keyed.write_bytes(b"".join(b"%05d:%s\n" % (n % 10_000, b"x" * 93) for n in range(500_000)))
    unlike = place.folder / "unlike"
    unlike.write_bytes(b"".join(b"%07d:%s\n" % (n, b"x" * 91) for n in range(500_000)))
    topics = [_kctl(place, "topics", "create", f"perf-{n}", "-p", str(n)) for n in (1, 6)]
    for create in topics:
        subprocess.run([*create, "--if-not-exists"], check=True, capture_output=True)
    return [
        _producing(place, "500,000 lines of 100 B", path, "perf-1", None),
        _producing(place, "the same, 10,000 keys, 6 partitions", keyed, "perf-6", ":"),
        _producing(place, "the same, each its own key", unlike, "perf-6", ":"),
    ]


def _producing(place: Place, label: str, path: Path, topic: str, delimiter: str | None) -> Case:
    ours = _kctl(place, "produce", topic) + (["-k", delimiter] if delimiter else [])
    theirs = {}
    if "kcat" in place.peers:
        theirs["kcat"] = [*place.peers["kcat"], "-P", "-b", place.address, "-t", topic]
        theirs["kcat"] += ["-K", delimiter] if delimiter else []
    if "kafka-producer" in place.peers:
        words = ["--bootstrap-server", place.address, "--topic", topic]
        if delimiter:
            words += ["--property", "parse.key=true", "--property", f"key.separator={delimiter}"]
        theirs["console producer"] = [*place.peers["kafka-producer"], *words]
    return Case(f"produce {label}", ours, "<= 2x kcat", theirs, str(path))


#: What can be asked for by --only: a row more is a command more.
CASES: dict[str, Callable[[Place], list[Case]]] = {
    "listing": _listing_cases,
    "produce": _produce_cases,
}


def _run(case: Case, rounds: int) -> str:
    """Run a case's commands in turn; returns its line of the report."""
    commands = {"kctl": case.ours, **case.peers}
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            cost = run_once(command, case.stdin_path)
            # The first run of each warms caches and is not counted.
            if round_number:
                costs[name].append(cost)
    ours = median(costs.pop("kctl"))
    theirs = ", ".join(
        f"{name} {cost.wall_s * 1000:.0f} ms ({ours.wall_s / cost.wall_s:.2f}x)"
        for name, cost in ((name, median(of_peer)) for name, of_peer in costs.items())
    )
    own = f"{ours.wall_s * 1000:.0f} ms, {ours.cpu_s:.2f} CPU-s, {ours.rss_mb:.0f} MB"
    return f"| {case.label} | {own} | {theirs or '–'} | {case.wanted} |"


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


def _starts(rounds: int, start: str, stop: str) -> list[str]:
    """Return the lines of the report about a cluster's start."""
    with tempfile.TemporaryDirectory() as folder:
        starts = sorted(_start_of_ours(folder) for _ in range(rounds))
    ours_s, rss_mb = starts[len(starts) // 2]
    theirs = "–"
    if start and stop:
        theirs_s = _start_of_theirs(start, stop)
        theirs = f"Kafka {theirs_s * 1000:.0f} ms ({ours_s / theirs_s:.2f}x)"
    return [
        f"| a cluster's start to its first answer | {ours_s * 1000:.0f} ms | {theirs} | <= 0.1x |",
        f"| idle broker's memory | {rss_mb:.0f} MB | – | <= 0.1x |",
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--only", default=",".join((*CASES, "start")))
    parser.add_argument("--kcat", default="kcat")
    parser.add_argument("--kafka-topics", default="")
    parser.add_argument("--kafka-producer", default="")
    parser.add_argument("--kafka-start", default="")
    parser.add_argument("--kafka-stop", default="")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    """Print one line a case."""
    asked = _arguments()
    # Compiled modules are kept, as they are wherever the package is installed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    named = {
        "kcat": asked.kcat,
        "kafka-topics": asked.kafka_topics,
        "kafka-producer": asked.kafka_producer,
    }
    peers = {name: shlex.split(words) for name, words in named.items() if words}
    peers = {name: words for name, words in peers.items() if shutil.which(words[0])}
    wanted = asked.only.split(",")
    print(f"{machine_line()}\n\n| case | kctl | others | wanted |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(asked.address, peers, Path(folder))
        for name in wanted:
            for case in CASES[name](place) if name in CASES else ():
                print(_run(case, asked.rounds), flush=True)
    if "start" in wanted:
        print("\n".join(_starts(asked.rounds, asked.kafka_start, asked.kafka_stop)))


if __name__ == "__main__":
    main()
