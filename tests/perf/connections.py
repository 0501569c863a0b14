"""What idle connections cost: memory of each, and the latency of the one client that is active.

    python -m tests.perf.connections [--counts 0 1000 5000] [--requests 4000] [--rounds 3]

An embedded cluster is started for each number of idle connections, which are opened and asked once
(ApiVersions), so that all that a connection ever has is there. RSS is the broker's, before and
after. The active client asks for ApiVersions, and produces one small batch after the other, each
one request at a time; rounds with and without the idle ones alternate.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from engine.host.descriptors import raise_descriptor_limit
from engine.wire.structs import message_class
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient
from tests.perf.ratios import machine_line
from tests.unit.log.writing import sent

_TOPIC = "active"


class Figures(NamedTuple):
    """What was measured with so many idle connections; times are p50, in µs."""

    idle_count: int
    bytes_each: float
    ask_us: float
    produce_us: float


@contextmanager
def _cluster(folder: Path) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(folder / "cluster")
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.destroy()


def _rss_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def _create(client: RawClient) -> None:
    request = message_class("CreateTopicsRequest")
    topic = request.CreatableTopic(name=_TOPIC, num_partitions=1, replication_factor=1)
    reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    assert reply.topics[0].error_code == 0


def _produce(client: RawClient) -> None:
    made = message_class("ProduceRequest")
    partition = made.PartitionProduceData(index=0, records=sent())
    topic = made.TopicProduceData(name=_TOPIC, partition_data=[partition])
    reply = client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=[topic])
    assert reply.responses[0].partition_responses[0].error_code == 0


def _p50_us(work: Callable[[], object], count: int) -> float:
    for _ in range(count // 10):
        work()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def _measure(cluster: EmbeddedCluster, idle_count: int, requests: int) -> Figures:
    """Measure with idle connections, which are closed again."""
    with ExitStack() as stack:
        active = stack.enter_context(RawClient(cluster.address))
        active.ask("ApiVersions", 0)
        before = _rss_bytes(cluster.pids[0])
        for _ in range(idle_count):
            stack.enter_context(RawClient(cluster.address)).ask("ApiVersions", 0)
        grown = _rss_bytes(cluster.pids[0]) - before
        return Figures(
            idle_count,
            grown / idle_count if idle_count else 0.0,
            _p50_us(lambda: active.ask("ApiVersions", 0), requests),
            _p50_us(lambda: _produce(active), requests),
        )


def run(counts: list[int], requests: int, rounds: int) -> list[Figures]:
    """Return the medians for each number of idle connections."""
    found: dict[int, list[Figures]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count in counts:
            with tempfile.TemporaryDirectory() as folder, _cluster(Path(folder)) as cluster:
                with RawClient(cluster.address) as client:
                    _create(client)
                    for _ in range(200):
                        _produce(client)
                found[count].append(_measure(cluster, count, requests))
    return [
        Figures(count, *(statistics.median(column) for column in list(zip(*each, strict=True))[1:]))
        for count, each in found.items()
    ]


def main() -> None:
    """Print one line for each number of idle connections."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", type=int, nargs="*", default=[0, 1000, 5000])
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    requested = parser.parse_args()
    limit = raise_descriptor_limit()
    if limit < max(requested.counts) * 4 // 3 + 200:
        raise SystemExit(f"{limit} descriptors are too few for so many connections")
    print(machine_line(), "\n")
    print("| idle connections | RSS each | ApiVersions p50 | to alone | produce p50 | to alone |")
    print("|---|---|---|---|---|---|")
    alone, *others = run(requested.counts, requested.requests, requested.rounds)
    for each in (alone, *others):
        size = f"{each.bytes_each / 1024:.1f} KB" if each.idle_count else "–"
        print(
            f"| {each.idle_count} | {size} "
            f"| {each.ask_us:.0f} µs | {each.ask_us / alone.ask_us:.2f}x "
            f"| {each.produce_us:.0f} µs | {each.produce_us / alone.produce_us:.2f}x |",
            flush=True,
        )


if __name__ == "__main__":
    main()
