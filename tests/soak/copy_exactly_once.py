"""Workers that copy in transactions while they, brokers and the controller are killed.

    make soak-transactions MINUTES=10      or: python -m tests.soak.copy_exactly_once --minutes 10

An idempotent producer fills an input topic (`ClusterLoad`); workers of one group, half of
librdkafka and half of the project's own client, copy it (`copying_worker`) to the outputs of
`copied_topics`. A cycle kills or pauses a worker, kills, pauses or restarts a broker (the
controller, or any), kills the metadata store, or disturbs a worker and a broker at once. All the
time the cleaner compacts one output and both internal topics, and retention takes from another
output.

What is checked once the workers have copied everything:

1. a reader of committed records finds what `copied_topics` says: each record once, in order;
2. the group's offsets are the ends of the input;
3. no transaction is open, none hangs, and the last stable offset of each output is its end;
4. the replicas of the output that is neither compacted nor deleted from are the same bytes;
5. nothing is held too much (`HeldLedger`).

With `--debug eos,broker,protocol` workers of librdkafka write what these contexts of its `debug`
report to `worker-N.log` beside the data, some megabytes a minute.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.soak.cluster_load import ClusterLoad, differing_replicas, until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.copied_topics import (
    COPIES,
    OUTPUTS,
    check_copies,
    committed_numbers,
    create_outputs,
)
from tests.soak.held_ledger import HeldLedger

_BROKERS: Final = (1, 2, 3)
_PARTITIONS: Final = 3
_INPUT: Final = "input"
_GROUP: Final = "copiers"
_INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state")
_DEADLINE_S: Final = 180.0
_SESSION_MS: Final = 3000
_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(_SESSION_MS),
    "replica.lag.time.max.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.segment.bytes": "65536",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.segment.bytes": "65536",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.check.interval.ms": "2000",
}
_ENDED: Final = frozenset(("Empty", "CompleteCommit", "CompleteAbort"))
_CLIENTS: Final = ("librdkafka", "own", "librdkafka", "own")
#: Both within a member's session timeout of 6 s, and long after it.
_PAUSES_S: Final = (0.5, 9.0)


class Workers:
    """The processes that copy, each started again whenever it has ended."""

    def __init__(
        self, address: str, folder: Path, random_numbers: random.Random, debug: str
    ) -> None:
        self._debug = [debug] if debug else []
        self._address = address
        self._folder = folder
        self._random = random_numbers
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * len(_CLIENTS)
        self.ended_count = 0

    def start_missing(self) -> None:
        """Start each worker that does not run."""
        for index, process in enumerate(self._processes):
            if process is None or process.poll() is not None:
                self.ended_count += process is not None
                self._processes[index] = self._request_log_dir_changes(index)

    def _request_log_dir_changes(self, index: int) -> subprocess.Popen[bytes]:
        seed = str(self._random.randrange(1 << 30))
        words = [_CLIENTS[index], self._address, _GROUP, f"copier-{index}", _INPUT, seed]
        words += self._debug
        with (self._folder / f"worker-{index}.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.soak.copying_worker", *words]
            return subprocess.Popen(command, stdout=log, stderr=log)

    def kill_one(self) -> None:
        """Kill one worker in the middle of its work."""
        process = self._processes[self._random.randrange(len(_CLIENTS))]
        if process is not None:
            process.kill()
            process.wait()

    def pause_one(self) -> None:
        """Stop one worker for a while; the group may go on without it."""
        process = self._processes[self._random.randrange(len(_CLIENTS))]
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(self._random.choice(_PAUSES_S))
            process.send_signal(signal.SIGCONT)

    def kill_all(self) -> None:
        """End every worker."""
        for process in self._processes:
            if process is not None:
                process.kill()
                process.wait()


class CopyingSoak:
    """A cluster, its input, the workers, and what happens to their processes."""

    def __init__(self, folder: Path, seed: int, per_s: int, debug: str = "") -> None:
        self._random = random.Random(seed)
        self._cluster = ClusterProcesses(folder / "data")
        self.done: Counter[str] = Counter()
        #: How many committed records each output has in the end.
        self.read: Counter[str] = Counter()
        self.address = self._cluster.start(len(_BROKERS), _SETTINGS)
        self._ledger = HeldLedger(self._cluster.log_dirs())
        self._ledger.begin(self._cluster.pids())
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self.load = ClusterLoad(self.address, _INPUT, _PARTITIONS, per_s)
        self.load.create_topic(self._admin, list(_BROKERS))
        rows = [[_BROKERS[(first + step) % 3] for step in range(3)] for first in range(_PARTITIONS)]
        create_outputs(self._admin, rows)
        self._until_in_sync()
        self.workers = Workers(self.address, folder, self._random, debug)
        self.workers.start_missing()
        self.load.start()

    def _until_in_sync(self) -> None:
        there = set(self._admin.list_topics(timeout=60).topics)
        for topic in (_INPUT, *OUTPUTS, *_INTERNAL_TOPICS):
            if topic in there:
                until_in_sync(self._admin, topic, len(_BROKERS))

    def cycle(self) -> None:
        """Disturb something, see the cluster whole again, and start the workers that have ended."""
        time.sleep(self._random.uniform(0.2, 2.0))
        kind = self._random.choice(("worker", "pause", "broker", "controller", "both", "store"))
        self.done[kind] += 1
        if kind == "pause":
            self.workers.pause_one()
        if kind in ("worker", "both"):
            self.workers.kill_one()
        if kind in ("broker", "controller", "both"):
            self._disturb_broker(is_controller=kind == "controller")
        if kind == "store":
            self._cluster.kill_store()
            time.sleep(self._random.choice((0.0, 1.0)))
            self._cluster.kctl("start")
        self._until_in_sync()
        self.workers.start_missing()
        assert self.load.errors == []

    def _disturb_broker(self, *, is_controller: bool) -> None:
        broker = str(self._random.choice(_BROKERS))
        if is_controller:
            broker = str(self._admin.list_topics(timeout=60).controller_id)
        what = self._random.choice(("kill", "kill", "pause", "restart"))
        if what == "restart":
            self._cluster.kctl("restart", broker)
            return
        self._cluster.kctl(what, broker)
        time.sleep(self._random.choice((0.0, 0.5, _SESSION_MS / 1000 + 1)))
        self._cluster.kctl("restart" if what == "kill" else "resume", broker)

    def finish(self) -> None:
        """End the load, have everything copied, and check."""
        self.load.finish()
        counts = [number + 1 for number in self.load.acknowledged]
        self._until_copied(counts)
        self.workers.kill_all()
        self._until_in_sync()
        self._until_ended()
        for topic in OUTPUTS:
            for partition, count in enumerate(counts):
                numbers = committed_numbers(self.address, topic, partition)
                try:
                    check_copies(topic, numbers, count)
                except AssertionError as error:
                    raise AssertionError(f"{topic}-{partition}: {error}") from None
                self.read[topic] += len(numbers)
        assert self._kctl("transactions", "find-hanging") == []
        self._check_last_stable_offsets()
        log_dirs = [self._cluster.log_dir(broker_id) for broker_id in _BROKERS]
        assert differing_replicas(log_dirs, COPIES, _PARTITIONS) == []
        self._ledger.check(self._cluster.pids())

    def _until_copied(self, counts: list[int]) -> None:
        """Wait until the group's offsets are the ends of the input."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": _GROUP, "log_level": 0})
        places = [TopicPartition(_INPUT, partition) for partition in range(_PARTITIONS)]
        end_s = time.monotonic() + _DEADLINE_S
        while True:
            committed = [place.offset for place in consumer.committed(places, 60)]
            if committed == counts:
                break
            assert time.monotonic() < end_s, (committed, counts)
            self.workers.start_missing()
            time.sleep(0.5)
        consumer.close()

    def _until_ended(self) -> None:
        """Wait until what the killed workers left open has ended by its time-out."""
        end_s = time.monotonic() + _DEADLINE_S
        while True:
            rows = self._kctl("transactions", "list")
            open_ones = [row for row in rows if row["state"] not in _ENDED]
            if not open_ones:
                return
            assert time.monotonic() < end_s, open_ones
            time.sleep(0.5)

    def _check_last_stable_offsets(self) -> None:
        ends = []
        for isolation in ("read_uncommitted", "read_committed"):
            consumer = Consumer(
                {
                    "bootstrap.servers": self.address,
                    "group.id": "unused",
                    "isolation.level": isolation,
                    "log_level": 0,
                }
            )
            ends.append(
                [
                    consumer.get_watermark_offsets(TopicPartition(topic, partition), 60)[1]
                    for topic in OUTPUTS
                    for partition in range(_PARTITIONS)
                ]
            )
            consumer.close()
        assert ends[0] == ends[1], ends

    def _kctl(self, *words: str) -> list[dict[str, object]]:
        command = [sys.executable, "-m", "kctl", *words, "-b", self.address, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        rows = json.loads(done.stdout)
        return list(rows if isinstance(rows, list) else rows["transactions"])

    def destroy(self) -> None:
        """Stop the cluster and remove it."""
        self._cluster.kctl("destroy", "-y")


def main() -> int:
    """Disturb for so many minutes and check; the data is left where that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=int, default=250)
    parser.add_argument("--debug", default="", metavar="CONTEXTS")
    requested = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-transactions-"))
    print(f"seed {requested.seed}, data in {folder}", flush=True)
    soak = CopyingSoak(folder, requested.seed, requested.per_second, requested.debug)
    try:
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < requested.minutes * 60:
            soak.cycle()
            if sum(soak.done.values()) % 10 == 0:
                count = soak.load.acknowledged_count
                print(
                    f"{time.monotonic() - begun_s:.0f} s, {count} records, {dict(soak.done)}",
                    flush=True,
                )
        soak.finish()
    finally:
        soak.workers.kill_all()
    soak.destroy()
    print(
        f"{soak.load.acknowledged_count} records copied once and in order, {dict(soak.done)}, "
        f"there in the end: {dict(soak.read)}; "
        f"{soak.workers.ended_count} workers ended and were started again"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
