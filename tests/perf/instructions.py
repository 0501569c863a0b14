"""Instructions of brokers per request, counted: the same on a busy machine as on a quiet one.

    python -m tests.perf.instructions --tree NAME=DIRECTORY [--tree …] [--folder DIR] [--only TEXT]
                                      [--brokers N]

Two brokers of the same code differ by more than half in throughput from run to run, so a change
of a few per cent is not seen there. Here the broker of each tree runs under valgrind's callgrind,
which counts only while requests are exchanged: a broker starts at a quarter of its speed, and its
compiled code is loaded before. With `--brokers N` a tree runs N brokers in one process, each
partition has a replica on each, and produces wait for all of them (acks=all): what followers do is
counted, too. What the kernel does is not counted, which is the same for all trees as long as they
read and write alike.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.perf.request_cost import exchange, fetch_frame, produce_frame
from tests.perf.transaction_load import EncodedTransactions

_TOPIC = "cost"
_TRANSACTION = "transaction"
#: Requests before the first that is counted.
_NOT_COUNTED = 200


class _Case(NamedTuple):
    api: str
    batch_bytes: int
    #: How many requests are sent before the first is answered.
    window: int
    #: How many requests are counted.
    requests: int = 2000

    @property
    def label(self) -> str:
        return f"{self.api} {self.batch_bytes} bytes, {self.window} ahead"


_CASES = [
    *(_Case("produce", *sizes) for sizes in ((180, 1), (180, 16), (1_024, 1), (16_384, 1))),
    *(_Case("produce", *sizes) for sizes in ((16_384, 5), (100_000, 1))),
    *(_Case("fetch", *sizes) for sizes in ((180, 1), (16_384, 1), (16_384, 5), (100_000, 1))),
    _Case(_TRANSACTION, 180, 1, 500),
]


class _Run:
    """The brokers of a tree in one process, under valgrind, on a folder of their own."""

    def __init__(self, tree: str, folder: Path, broker_count: int) -> None:
        self._out, self._counts = folder / "out", folder / "counts"
        self.port = _free_port()
        self._dump_count = 0
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={self._counts}", sys.executable, "-m", "kctl"]
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                [*command, *self._arguments(folder, broker_count)],
                cwd=tree,
                env={**os.environ, "PYTHONPATH": tree, "PYTHONHASHSEED": "0"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        while b"ready" not in self._out.read_bytes():
            if self._process.poll() is not None:
                raise SystemExit(self._out.read_text())
            time.sleep(0.2)

    def _arguments(self, folder: Path, broker_count: int) -> list[str]:
        """Return the arguments of kctl that run the brokers until a signal comes."""
        settings = ["log.retention.check.interval.ms=100000000"]
        if broker_count > 1:
            # Nobody leaves the ISR for being slow, as all are here.
            settings += ["replica.lag.time.max.ms=100000000"]
            start = ["cluster", "start", "--foreground", "--data", f"{folder}/data"]
            start += ["--port", str(self.port), "--brokers", str(broker_count)]
            return [*start, *(part for setting in settings for part in ("--set", setting))]
        settings += ["broker.id=1", f"listeners=PLAINTEXT://127.0.0.1:{self.port}"]
        settings += [f"log.dirs={folder}/logs", "transaction.state.log.replication.factor=1"]
        settings += ["transaction.state.log.min.isr=1"]
        config = folder / "server.properties"
        config.write_text("\n".join(settings))
        return ["broker", "run", "--config", str(config)]

    def count(self, work: Callable[[], object]) -> int:
        """Return how many instructions the brokers run while `work` is done."""
        self._control("--zero")
        self._control("--instr=on")
        work()
        self._control("--instr=off")
        self._control("--dump")
        self._dump_count += 1
        dump = self._counts.with_name(f"{self._counts.name}.{self._dump_count}")
        counted = re.search(r"^totals: (\d+)$", dump.read_text(), re.MULTILINE)
        if counted is None:
            raise SystemExit(f"{dump} has no totals")
        return int(counted[1])

    def _control(self, option: str) -> None:
        """Have callgrind do this now."""
        control = ["callgrind_control", option, str(self._process.pid)]
        subprocess.run(control, check=True, capture_output=True)

    def end(self) -> None:
        """Stop the brokers."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _folder(parent: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=parent) as path:
        yield Path(path)


def _costs(tree: str, parent: str | None, broker_count: int, cases: list[_Case]) -> list[float]:
    """Return the instructions of a request of each case, in the brokers of a tree."""
    with _folder(parent) as folder:
        run = _Run(tree, folder, broker_count)
        try:
            return [
                _cost(run, broker_count, f"{_TOPIC}{at}", case) for at, case in enumerate(cases)
            ]
        finally:
            run.end()


def _cost(run: _Run, broker_count: int, topic: str, case: _Case) -> float:
    """Return the instructions of a request of a case, on a topic of its own.

    A fetch is answered from one batch, which is produced before.
    """
    host, port = _create(f"127.0.0.1:{run.port}", topic, broker_count)
    if case.api == _TRANSACTION:
        producer = EncodedTransactions(f"{host}:{port}", _TRANSACTION, topic, 2 * case.requests)
        producer.run(case.requests)
        counted = run.count(lambda: producer.run(case.requests))
        producer.close()
        return counted / case.requests
    with socket.create_connection((host, port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frame = produce_frame(topic, case.batch_bytes, acks=1 if broker_count == 1 else -1)
        if case.api == "fetch":
            exchange(sock, frame, 1, 1)
            frame = fetch_frame(topic, 0, case.batch_bytes)
        exchange(sock, frame, _NOT_COUNTED, case.window)
        return run.count(lambda: exchange(sock, frame, case.requests, case.window)) / case.requests


def _create(address: str, topic: str, replicas: int) -> tuple[str, int]:
    """Create a topic of one partition; returns the address of its leader, once there is one."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result()
    while True:
        metadata = admin.list_topics(topic)
        partition = metadata.topics[topic].partitions.get(0)
        if partition is not None and partition.leader in metadata.brokers:
            leader = metadata.brokers[partition.leader]
            return str(leader.host), leader.port
        time.sleep(0.2)


def main() -> None:
    """Count, and print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", action="append", required=True, metavar="NAME=DIRECTORY")
    parser.add_argument("--folder", help="where the logs are; a memory file system is quickest")
    parser.add_argument("--only", default="", help="cases whose label has this text")
    parser.add_argument("--brokers", type=int, default=1, metavar="N")
    given = parser.parse_args()
    trees = [text.split("=", 1) for text in given.tree]
    cases = [case for case in _CASES if given.only in case.label]
    if given.brokers > 1:
        # Followers fetch what is produced; other requests cost as with one broker.
        cases = [case for case in cases if case.api == "produce"]
    costs = [_costs(tree, given.folder, given.brokers, cases) for _, tree in trees]
    print(f"| case | {' | '.join(name for name, _ in trees)} |")
    print("|---" * (len(trees) + 1) + "|")
    for case, *row in zip(cases, *costs, strict=True):
        cells = (f"{cost:,.0f} ({cost / row[0]:.3f}x)" for cost in row)
        print(f"| {case.label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
