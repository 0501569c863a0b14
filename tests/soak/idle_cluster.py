"""A cluster that nobody asks for anything: what it holds does not grow.

    make soak-idle                    or: python -m tests.soak.idle_cluster --minutes 10
    python -m tests.soak.idle_cluster --processes --minutes 3 --load-seconds 9

A thousand partitions of three replicas. First a load, acks=all, whose segments are rolled and
deleted all the time, if one is asked for; then nothing but the brokers themselves, whose followers
fetch twice a second.

What is checked:

1. from the end of a warm-up to the end all processes together grow by less than 2 MB;
2. every replica is in sync all that time, and no broker says that anything is wrong;
3. nothing is held too much (`HeldLedger`), before the idle time and after it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.soak.cluster_load import DEADLINE_S, until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.held_ledger import HeldLedger, rss_kib

_SETTINGS = {
    "num.partitions": "1",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "1000",
    "auto.create.topics.enable": "false",
}
_IDLE, _LOADED = "idle", "loaded"
_LOADED_PARTITIONS = 3
_LOADED_SETTINGS = {"segment.bytes": "8388608", "retention.bytes": "16777216"}
_RECORD = bytes(range(256)) * 40
_GROWN_KIB_MAX = 2048
_SAMPLE_S = 5.0
#: So many samples at each end are one figure: the collector of each process comes and goes.
_SAMPLES = 6
_RSS_MIB_MAX = 512
_FAULTS = ("Traceback", "was not served", " CRITICAL ", "is offline")


class IdleSoak:
    """A cluster and what it holds."""

    def __init__(self, data: Path, brokers: int, partitions: int, *, is_one_process: bool) -> None:
        self.cluster = ClusterProcesses(data, is_one_process=is_one_process)
        self._replicas = min(3, brokers)
        self.address = self.cluster.start(brokers, _SETTINGS)
        self._ledger = HeldLedger(self.cluster.log_dirs(), rss_mib_max=_RSS_MIB_MAX)
        self._ledger.begin(self.cluster.pids())
        admin = self._admin()
        new = [
            NewTopic(_IDLE, partitions, self._replicas),
            NewTopic(_LOADED, _LOADED_PARTITIONS, self._replicas, config=_LOADED_SETTINGS),
        ]
        for future in admin.create_topics(new).values():
            future.result(DEADLINE_S)
        self._in_sync(admin)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _in_sync(self, admin: AdminClient) -> None:
        for topic in (_IDLE, _LOADED):
            until_in_sync(admin, topic, self._replicas)

    def load(self, seconds: float) -> float:
        """Produce as much as the cluster takes for so long; return the MB a second."""
        producer = Producer(
            {
                "bootstrap.servers": self.address,
                "acks": "all",
                "linger.ms": 5,
                "batch.size": 1 << 20,
                "queue.buffering.max.kbytes": 1 << 16,
                "log_level": 0,
            }
        )
        sent, began_s = 0, time.monotonic()
        while time.monotonic() - began_s < seconds:
            try:
                producer.produce(_LOADED, _RECORD, partition=sent % _LOADED_PARTITIONS)
                sent += 1
            except BufferError:
                producer.poll(0.05)
        assert producer.flush(DEADLINE_S) == 0
        return sent * len(_RECORD) / 1e6 / (time.monotonic() - began_s)

    def check(self) -> None:
        """Check that nothing is held too much, and that no broker complains."""
        self._ledger.check(self.cluster.pids())
        self._in_sync(self._admin())
        faults = [line for line in self._said().splitlines() if any(w in line for w in _FAULTS)]
        assert not faults, faults[:10]

    def _said(self) -> str:
        logs = sorted(self.cluster.data.glob("*.log"))
        return "".join(path.read_text(errors="replace") for path in logs)

    def rest(self, seconds: float, began_s: float) -> list[int]:
        """Do nothing for so long; return the memory of all processes, in KiB, every few seconds."""
        samples: list[int] = []
        end_s = time.monotonic() + seconds
        while not samples or time.monotonic() < end_s:
            time.sleep(_SAMPLE_S)
            each = {name: rss_kib(pid) for name, pid in self.cluster.pids().items()}
            samples.append(sum(each.values()))
            if len(samples) % _SAMPLES == 1:
                print(f"{time.monotonic() - began_s:5.0f} s: {each}", flush=True)
        return samples

    def destroy(self) -> None:
        """Stop the cluster and remove it."""
        self.cluster.kctl("destroy", "-y")


def run(requested: argparse.Namespace, data: Path) -> str:
    """Run it; any broken claim is an AssertionError, which leaves the files."""
    soak = IdleSoak(
        data, requested.brokers, requested.partitions, is_one_process=not requested.processes
    )
    try:
        said = _run(soak, requested)
    finally:
        soak.cluster.kctl("stop")
    soak.destroy()
    return said


def _run(soak: IdleSoak, requested: argparse.Namespace) -> str:
    began_s = time.monotonic()
    if requested.load_seconds:
        print(f"loaded with {soak.load(requested.load_seconds):.0f} MB/s", flush=True)
    soak.rest(requested.warm_up_seconds, began_s)
    soak.check()
    samples = soak.rest(requested.minutes * 60, began_s)
    count = min(_SAMPLES, (len(samples) + 1) // 2)
    first = statistics.median(samples[:count])
    grown = statistics.median(samples[-count:]) - first
    said = (
        f"{requested.partitions} partitions on {requested.brokers} brokers, "
        f"{requested.minutes:g} minutes idle: {first / 1024:.1f} MiB, grown by {grown:.0f} KiB"
    )
    assert grown < _GROWN_KIB_MAX, said
    soak.check()
    return said


def main() -> int:
    """Run by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--processes", action="store_true", help="each broker in one of its own")
    parser.add_argument("--load-seconds", type=float, default=9.0, help="0 for no load first")
    parser.add_argument("--warm-up-seconds", type=float, default=60.0)
    requested = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-idle-"))
    print(f"data in {folder}", flush=True)
    print(run(requested, folder / "data"))
    folder.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
