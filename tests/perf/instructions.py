"""Instructions of one broker per request, counted: the same on a busy machine as on a quiet one.

    python -m tests.perf.instructions --tree NAME=DIRECTORY [--tree …] [--folder DIR] [--only TEXT]

Two brokers of the same code differ by more than half in throughput from run to run, so a change
of a few per cent is not seen there. Here each tree's broker runs twice under valgrind's callgrind,
with fewer and with more of the same requests; the difference is what the requests cost. What the
kernel does is not counted, which is the same for all trees as long as they read and write alike.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.perf.request_cost import exchange, fetch_frame, produce_frame
from tests.perf.transaction_load import EncodedTransactions

_TOPIC = "cost"
_TRANSACTION = "transaction"


class _Case(NamedTuple):
    api: str
    batch_bytes: int
    #: How many requests are sent before the first is answered.
    window: int
    #: The fewer and the more requests.
    few: int = 1000
    many: int = 5000

    @property
    def label(self) -> str:
        return f"{self.api} {self.batch_bytes} bytes, {self.window} ahead"


_CASES = [
    *(_Case("produce", *sizes) for sizes in ((180, 1), (180, 16), (1_024, 1), (16_384, 1))),
    *(_Case("produce", *sizes) for sizes in ((16_384, 5), (100_000, 1))),
    *(_Case("fetch", *sizes) for sizes in ((180, 1), (16_384, 1), (16_384, 5), (100_000, 1))),
    _Case(_TRANSACTION, 180, 1, 200, 1000),
]


class _Run:
    """A broker under valgrind, on a folder of its own."""

    def __init__(self, tree: str, folder: Path) -> None:
        self._out = folder / "out"
        self.port = _free_port()
        config = folder / "server.properties"
        config.write_text(
            f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:{self.port}\n"
            f"log.dirs={folder}/logs\nlog.retention.check.interval.ms=100000000\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        )
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        command += [sys.executable, "-m", "kctl", "broker", "run", "--config", str(config)]
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                cwd=tree,
                env={**os.environ, "PYTHONPATH": tree, "PYTHONHASHSEED": "0"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        while b"ready" not in self._out.read_bytes():
            if self._process.poll() is not None:
                raise SystemExit(self._out.read_text())
            time.sleep(0.2)

    def end(self) -> int:
        """Stop the broker; returns how many instructions it had run."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        counted = re.search(r"Collected : (\d+)", self._out.read_text())
        if counted is None:
            raise SystemExit(self._out.read_text())
        return int(counted[1])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _folder(parent: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=parent) as path:
        yield Path(path)


def _total(tree: str, parent: str | None, case: _Case, count: int) -> int:
    """Return the instructions of a broker that answers `count` requests of a case.

    A fetch is answered from one batch, which is produced before.
    """
    with _folder(parent) as folder:
        run = _Run(tree, folder)
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{run.port}"})
        admin.create_topics([NewTopic(_TOPIC, 1, 1)])[_TOPIC].result()
        del admin
        if case.api == _TRANSACTION:
            _run_transactions(f"127.0.0.1:{run.port}", count)
            return run.end()
        with socket.create_connection(("127.0.0.1", run.port)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frame = produce_frame(_TOPIC, case.batch_bytes)
            if case.api == "fetch":
                exchange(sock, frame, 1, 1)
                frame = fetch_frame(_TOPIC, 0, case.batch_bytes)
            exchange(sock, frame, count, case.window)
        return run.end()


def _run_transactions(address: str, count: int) -> None:
    producer = EncodedTransactions(address, _TRANSACTION, _TOPIC, count)
    producer.run(count)
    producer.close()


def main() -> None:
    """Count, and print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", action="append", required=True, metavar="NAME=DIRECTORY")
    parser.add_argument("--folder", help="where the logs are; a memory file system is quickest")
    parser.add_argument("--only", default="", help="cases whose label has this text")
    given = parser.parse_args()
    trees = [text.split("=", 1) for text in given.tree]
    print(f"| case | {' | '.join(name for name, _ in trees)} |")
    print("|---" * (len(trees) + 1) + "|")
    for case in _CASES:
        if given.only not in case.label:
            continue
        costs = []
        for _, directory in trees:
            few, many = (
                _total(directory, given.folder, case, count) for count in (case.few, case.many)
            )
            costs.append((many - few) / (case.many - case.few))
        cells = (f"{cost:,.0f} ({cost / costs[0]:.3f}x)" for cost in costs)
        print(f"| {case.label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
