"""Whole commands: how long `kctl` takes, beside kcat and Kafka's own tools.

    python -m tests.perf.commands --address HOST:PORT [--rounds 7] [--only produce]
           [--kcat kcat] [--kafka-topics "kafka-topics.sh"]
           [--kafka-producer "kafka-console-producer.sh"]
           [--kafka-consumer "kafka-console-consumer.sh"]
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


#: Single answers of a cluster that need no name of anything in it.
_ANSWERS = [
    ("topics", "describe", "--match", ".*"),
    ("brokers", "list"),
    ("brokers", "describe"),
    ("configs", "describe", "--broker-defaults"),
    ("leaders", "list"),
    ("check",),
]
_FLOOR = "import typer, asyncio"


def _listing_cases(place: Place) -> list[Case]:
    theirs = {}
    if "kafka-topics" in place.peers:
        words = ["--bootstrap-server", place.address, "--list"]
        theirs["Kafka's tool"] = [*place.peers["kafka-topics"], *words]
    return [
        Case("--help", [_KCTL, "--help"], "<= 100 ms"),
        Case("topics list", _kctl(place, "topics", "list"), "<= 120 ms", theirs),
        *(Case(" ".join(words), _kctl(place, *words), "<= 150 ms") for words in _ANSWERS),
        # What no command of Typer's that talks to sockets can be quicker than.
        Case("Python alone, importing Typer and asyncio", [sys.executable, "-c", _FLOOR], "floor"),
    ]


def _lines(place: Place, name: str, line: Callable[[int], bytes], count: int = 500_000) -> Path:
    """Write lines; one by one, for a child's peak of memory starts with its parent's."""
    path = place.folder / name
    with path.open("wb") as file:
        file.writelines(line(number) for number in range(count))
    return path


def _produce_million_cases(place: Place) -> list[Case]:
    """Produce what takes so long that starts count little; no compression on either side."""
    path = _lines(place, "million-lines", lambda n: b"%07d%s\n" % (n, b"x" * 93), 1_000_000)
    create = _kctl(place, "topics", "create", "perf-1", "-p", "1", "--if-not-exists")
    subprocess.run(create, check=True, capture_output=True)
    return [_producing(place, "1,000,000 lines of 100 B", path, "perf-1", None)]


def _produce_cases(place: Place) -> list[Case]:
    path = _lines(place, "lines", lambda n: b"%07d%s\n" % (n, b"x" * 92))
    keyed = _lines(place, "keyed", lambda n: b"%05d:%s\n" % (n % 10_000, b"x" * 93))
    unlike = _lines(place, "unlike", lambda n: b"%07d:%s\n" % (n, b"x" * 91))
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


def _consume_cases(place: Place) -> list[Case]:
    topic = "perf-million"
    create = _kctl(place, "topics", "create", topic, "-p", "1", "--if-not-exists")
    subprocess.run(create, check=True, capture_output=True)
    offsets = subprocess.run(
        _kctl(place, "offsets", "get", topic, "-o", "json"), check=True, capture_output=True
    )
    if not json.loads(offsets.stdout)[0]["end_offset"]:
        path = _lines(place, "million", lambda n: b"%07d%s\n" % (n, b"x" * 92))
        for _ in range(2):
            with path.open("rb") as lines:
                subprocess.run(_kctl(place, "produce", topic), check=True, stdin=lines)
    ours = _kctl(place, "consume", topic, "-e")
    theirs = {}
    if "kcat" in place.peers:
        words = ["-C", "-b", place.address, "-t", topic, "-e", "-q"]
        theirs["kcat"] = [*place.peers["kcat"], *words]
    if "kafka-consumer" in place.peers:
        words = ["--bootstrap-server", place.address, "--topic", topic, "--partition", "0"]
        words += ["--from-beginning", "--max-messages", "1000000"]
        theirs["console consumer"] = [*place.peers["kafka-consumer"], *words]
    text = {"-f": [*ours, "-f", "%s\\n"]}
    return [
        Case("consume 1 M records of 100 B", ours, "<= 1.2x kcat", theirs),
        *(
            Case(f"the same, -o {name}", [*ours, "-o", name], "<= 3x -f", text)
            for name in ("csv", "ndjson", "json")
        ),
    ]


def _dump_cases(place: Place) -> list[Case]:
    """Dump a log of 2.2 M records, made here by an embedded broker."""
    data, topic = ["--data", str(place.folder / "cluster")], "dumped"
    started = subprocess.run(
        [_KCTL, "cluster", "start", "--port", "0", *data, "-o", "json"],
        check=True,
        capture_output=True,
    )
    own = place._replace(address=json.loads(started.stdout)["bootstrap_servers"])
    subprocess.run(_kctl(own, "topics", "create", topic), check=True, capture_output=True)
    path = _lines(place, "dumped", lambda n: b"%07d%s\n" % (n, b"x" * 92))
    for count in (500_000,) * 4 + (200_000,):
        text = b"".join(path.read_bytes().splitlines(keepends=True)[:count])
        subprocess.run(_kctl(own, "produce", topic), check=True, input=text, capture_output=True)
    subprocess.run([_KCTL, "cluster", "stop", *data], check=True, capture_output=True)
    ours = [_KCTL, "dump-log", str(place.folder / "cluster" / "broker-1" / f"{topic}-0")]
    return [
        Case(f"dump-log 2.2 M records, -o {name}", [*ours, "-o", name], wanted)
        for name, wanted in (("ndjson", "<= 8 s with fast, 25 s without"), ("csv", "the same"))
    ]


#: What can be asked for by --only: a row more is a command more.
CASES: dict[str, Callable[[Place], list[Case]]] = {
    "listing": _listing_cases,
    "produce": _produce_cases,
    "produce-million": _produce_million_cases,
    "consume": _consume_cases,
    "dump": _dump_cases,
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
    parser.add_argument("--kafka-consumer", default="")
    parser.add_argument("--kafka-start", default="")
    parser.add_argument("--kafka-stop", default="")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def main() -> None:
    """Print one line a case."""
    requested = _arguments()
    # Compiled modules are kept, as they are wherever the package is installed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    named = {
        "kcat": requested.kcat,
        "kafka-topics": requested.kafka_topics,
        "kafka-producer": requested.kafka_producer,
        "kafka-consumer": requested.kafka_consumer,
    }
    peers = {name: shlex.split(words) for name, words in named.items() if words}
    peers = {name: words for name, words in peers.items() if shutil.which(words[0])}
    wanted = requested.only.split(",")
    print(f"{machine_line()}\n\n| case | kctl | others | wanted |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(requested.address, peers, Path(folder))
        for name in wanted:
            for case in CASES[name](place) if name in CASES else ():
                print(_run(case, requested.rounds), flush=True)
    if "start" in wanted:
        print("\n".join(_starts(requested.rounds, requested.kafka_start, requested.kafka_stop)))


if __name__ == "__main__":
    main()
