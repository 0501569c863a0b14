"""One embedded broker against real ones, by the same librdkafka client: throughput, latency, CPU.

    python -m tests.perf.broker --peer "Kafka 3.9.1=127.0.0.1:9092=PID" [--peer …]
                                [--rounds 3] [--mb 512] [--only TEXT] [--settings k=v …]
                                [--client k=v …]

Peers are brokers that run already, by name, address and process. Ours is started here, on a
directory of its own. Every case runs on all in turn, round after round, after a round that is not
counted (it warms Java up); the medians are compared. `--settings` are those of our broker,
`--client` those of all clients.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from tests.perf.load import Broker, Load, Outcome, consume, produce, produce_pipelined, produce_sync
from tests.perf.ratios import machine_line

_MB = 1_000_000


class Peer(NamedTuple):
    """A broker: what it is called, where it listens, which processes it is."""

    name: str
    address: str
    pids: list[int]


class Kind(NamedTuple):
    """Topics and producers of all cases, and how ours is started."""

    replicas: int = 1
    acks: str = "1"
    options: tuple[str, ...] = ()
    client: tuple[tuple[str, str], ...] = ()


class Case(NamedTuple):
    """One thing that is measured; `wanted` is what the ratio to the first peer should be."""

    label: str
    run: Callable[[Broker, int], Outcome]
    wanted: str


def produce_case(label: str, wanted: str, value: int, batch: int, codec: str = "none") -> Case:
    load = Load(value_bytes=value, batch_bytes=batch, codec=codec)
    return Case(label, partial(produce, load), wanted)


CASES = [
    produce_case("produce 1 KB records, 100 KB batches", ">= 1.2x", 1000, 100_000),
    produce_case("produce 1 KB records, 1 MB batches", ">= 1.05x", 1000, 1_000_000),
    produce_case("produce 1 KB records, 16 KB batches", ">= 1.6x", 1000, 16_384),
    produce_case("produce 10 KB records, 100 KB batches", ">= 1.5x", 10_000, 100_000),
    produce_case("produce 1 KB records, 100 KB batches, lz4", ">= 1.1x", 1000, 100_000, "lz4"),
    produce_case("produce 1 KB records, 100 KB batches, zstd", ">= 1.0x", 1000, 100_000, "zstd"),
    Case("produce one record a request, pipelined", produce_pipelined, ">= 1.3x"),
    Case("produce one record, wait, next: p50", produce_sync, "<= 1.0x"),
    Case("consume 1 KB records", consume, ">= 1.0x"),
]


@contextmanager
def ours(folder: str, settings: list[str], *options: str) -> Iterator[Peer]:
    """Run an embedded cluster, of one broker if `options` do not say otherwise."""
    kctl = [sys.executable, "-m", "kctl", "cluster"]
    data = ["--data", f"{folder}/kctl"]
    sets = [word for text in settings for word in ("--set", text)]
    start = [*kctl, "start", *data, "--port", "0", "-o", "json", *sets, *options]
    status = json.loads(subprocess.run(start, check=True, capture_output=True).stdout)
    try:
        yield Peer("kctl", status["bootstrap_servers"], status["pids"])
    finally:
        subprocess.run([*kctl, "destroy", *data, "-y"], check=True, capture_output=True)


def _cpu_s(pids: list[int]) -> float:
    """Return the CPU time that processes have used, in user and system mode."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _rss_mb(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as status:
            total += sum(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    return total / 1024


def _median(results: list[Outcome]) -> Outcome:
    return Outcome(
        statistics.median(result.figure for result in results),
        results[0].unit,
        statistics.median(result.cpu for result in results),
    )


def _cell(result: Outcome) -> str:
    return f"{result.figure:.0f} {result.unit}, {result.cpu:.2f}"


def run_case(
    case: Case, peers: list[Peer], rounds: int, size_bytes: int, kind: Kind
) -> list[Outcome]:
    """Return the median on each broker; the first round is not counted."""
    found: list[list[Outcome]] = [[] for _ in peers]
    for number in range(rounds + 1):
        for peer, results in zip(peers, found, strict=True):
            cpu_s = partial(_cpu_s, peer.pids)
            broker = Broker(peer.address, cpu_s, kind.replicas, kind.acks, kind.client)
            result = case.run(broker, size_bytes)
            if number:
                results.append(result)
    return [_median(results) for results in found]


def main() -> None:
    """Print one line a case."""
    measure(CASES, Kind())


def measure(cases: list[Case], kind: Kind) -> None:
    """Print one line a case, of ours and of the peers that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=ADDRESS=PID[,PID]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mb", type=int, default=512)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--client", nargs="*", default=[])
    requested = parser.parse_args()
    client = [tuple(text.split("=", 1)) for text in requested.client]
    kind = kind._replace(client=tuple((name, value) for name, value in client))
    peers = []
    for text in requested.peer:
        name, address, pids = text.split("=")
        peers.append(Peer(name, address, [int(pid) for pid in pids.split(",")]))
    with (
        tempfile.TemporaryDirectory(dir=requested.folder) as folder,
        ours(folder, requested.settings, *kind.options) as me,
    ):
        everyone = [me, *peers]
        print(machine_line(), "\n")
        print("CPU is the broker's, in seconds a GB, or µs a request where requests are counted\n")
        heads = [peer.name for peer in everyone]
        ratios = [f"to {peer.name}" for peer in peers]
        print(f"| case | {' | '.join([*heads, *ratios, 'wanted'])} |")
        print("|---" * (2 + len(heads) + len(ratios)) + "|")
        for case in cases:
            if requested.only not in case.label:
                continue
            mine, *others = run_case(case, everyone, requested.rounds, requested.mb * _MB, kind)
            cells = [_cell(mine), *(_cell(other) for other in others)]
            cells += [
                f"{mine.figure / other.figure:.2f}x, CPU {mine.cpu / other.cpu:.2f}x"
                for other in others
            ]
            print(f"| {case.label} | {' | '.join([*cells, case.wanted])} |", flush=True)
        cells = [f"{_rss_mb(peer.pids):.0f} MB" for peer in everyone]
        print(f"| RSS after that | {' | '.join(cells)} |" + " |" * (len(peers) + 1))


if __name__ == "__main__":
    main()
