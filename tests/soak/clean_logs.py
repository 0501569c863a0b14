"""Compaction and retention during kills: no last value of a key is lost.

    make soak-clean                   or: python -m tests.soak.clean_logs --brokers 3 --minutes 10

Keyed upserts and tombstones go to topics that are compacted, compacted and deleted, deleted, and
changed from one to the other, in segments of some kilobytes that are cleaned all the time. A cycle:
a broker is killed (SIGKILL), half of the times just as a segment is put in the place of others, or
restarted cleanly; it comes back, and all replicas get in sync. Every few cycles the cluster is
stopped, and transactions are written into the log of one partition: committed, aborted, left open.

What is checked after each cycle, by a consumer from the first record on (`KeyedPartition`):

1. the last value of each key is the last that was acknowledged and committed, deleted ones are gone
   or tombstones, and tombstones stay for delete.retention.ms;
2. every record that is there was sent, at its offset, in its order; none of an aborted transaction;
3. only records older than retention.ms are below the start of a log.

In the end the same in the files of every replica; every file by `kctl log verify`'s rules and by
Kafka's own dump-log, where KCTL_TEST_KAFKA_LIBS names its jars; no broker said anything is wrong,
and none holds anything too much (`HeldLedger`).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.cluster.java_tools import JavaTools
from tests.soak import cleaned_files, keyed_reading
from tests.soak.broker_process import free_port
from tests.soak.cluster_load import DEADLINE_S, until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.held_ledger import HeldLedger
from tests.soak.keyed_partition import DELETE_RETENTION_MS, Kept, KeyedPartition, Read
from tests.soak.keyed_reading import consume, read_files, start_offsets
from tests.soak.keyed_writer import How, KeyedWriter
from tests.soak.planted_transactions import PlantedTransactions
from tests.soak.writers import Place

_SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "log.segment.bytes": "16384",
    "log.index.interval.bytes": "512",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.cleaner.threads": "2",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "auto.create.topics.enable": "false",
}
_DIRTY = {"min.cleanable.dirty.ratio": "0.05"}
_COMPACT = {
    "cleanup.policy": "compact",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    **_DIRTY,
}
_TRANSACTIONS = Place("transactions", 0)
_SWITCHED = Place("switched", 0)
#: What is said of each topic's partitions: how it is kept, its settings, how each is written.
_TOPICS: dict[str, tuple[Kept, dict[str, str], tuple[How, ...]]] = {
    "upserts": (Kept(), _COMPACT, (How(), How("zstd"))),
    "packed": (Kept(), _COMPACT, (How("gzip"), How("snappy"))),
    "numberless": (Kept(knows_offsets=False), _COMPACT, (How("lz4", is_idempotent=False),)),
    "tombstones": (
        Kept(delete_retention_ms=None),
        {**_COMPACT, "delete.retention.ms": "86400000"},
        (How(),),
    ),
    "both": (
        Kept(retention_ms=20_000),
        {**_COMPACT, "cleanup.policy": "compact,delete", "retention.ms": "20000"},
        (How(),),
    ),
    "aged": (
        Kept(is_compacted=False, retention_ms=5_000),
        {"cleanup.policy": "delete", "retention.ms": "5000", "segment.ms": "2000"},
        (How("lz4"),),
    ),
    _SWITCHED.topic: (Kept(), {**_COMPACT, "retention.ms": "-1"}, (How(),)),
    _TRANSACTIONS.topic: (Kept(), _COMPACT, (How(),)),
}
_PLANTED_EACH = 4
_WATCHED_S = 3.0
_READINGS_MAX = 5
_CLEANED = re.compile(r"^\[.*Log cleaner thread cleaned log", re.MULTILINE)
_FAULTS = ("Traceback", "was not served", " CRITICAL ", "is offline", "uncleanable")


class CleanSoak:
    """A cluster, keyed loads on it, and what happens to its brokers."""

    def __init__(self, folder: Path, brokers: int, seed: int, port: int = 0) -> None:
        """Start it; without a port on one that is free, which it keeps over a stop."""
        self._random = random.Random(seed)
        self._brokers = range(1, brokers + 1)
        self._folder = folder
        self.cluster = ClusterProcesses(folder / "data")
        self.address = self.cluster.start(brokers, _SETTINGS, port or free_port())
        self._ledger = HeldLedger(self.cluster.log_dirs())
        self._ledger.begin(self.cluster.pids())
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self.partitions: dict[Place, KeyedPartition] = {}
        self.writers: list[KeyedWriter] = []
        self._create(brokers)
        self.transactions = PlantedTransactions(self.partitions[_TRANSACTIONS], seed)
        self._acknowledged_before = 0
        self.done: Counter[str] = Counter()
        #: What kinds of files a kill left during a change, and how often.
        self.left: Counter[str] = Counter()
        self._in_sync()
        for writer in self.writers:
            writer.resume()

    def _create(self, brokers: int) -> None:
        new = [
            NewTopic(name, len(hows), brokers, config=settings)
            for name, (_, settings, hows) in _TOPICS.items()
        ]
        for future in self._admin.create_topics(new).values():
            future.result(DEADLINE_S)
        for name, (kept, _, hows) in _TOPICS.items():
            for index, how in enumerate(hows):
                partition = KeyedPartition(Place(name, index), kept)
                self.partitions[partition.place] = partition
                self.writers.append(self._writer(partition, how))

    def _writer(self, partition: KeyedPartition, how: How) -> KeyedWriter:
        return KeyedWriter(self.address, partition, how, self._random.randrange(1 << 30))

    def _in_sync(self) -> None:
        for name in _TOPICS:
            until_in_sync(self._admin, name, len(self._brokers))

    @property
    def acknowledged_count(self) -> int:
        """Return how many records were acknowledged."""
        return self._acknowledged_before + sum(w.acknowledged_count for w in self.writers)

    # What happens

    def cycle(self) -> None:
        """Do something to a broker during the load, see it come back, and check."""
        broker_id, began_s = self._random.choice(self._brokers), time.monotonic()
        self._random.choice((self._kill, self._kill_amid, self._kill_amid, self._restart))(
            broker_id
        )
        self._switch_policy()
        self._in_sync()
        away_s = time.monotonic() - began_s
        assert away_s * 1000 < DELETE_RETENTION_MS, f"{away_s} s: too slow for tombstones"
        for writer in self.writers:
            writer.settle()
        self.check()
        if sum(self.done.values()) % _PLANTED_EACH == 0:
            self._plant()
        self._replace_a_writer()
        for writer in self.writers:
            writer.resume()

    def _kill(self, broker_id: int) -> None:
        time.sleep(self._random.uniform(0.5, 3.0))
        self.cluster.kill(broker_id)
        self._come_back(broker_id, "killed")

    def _kill_amid(self, broker_id: int) -> None:
        """Kill a broker as soon as a segment of its logs is being replaced."""
        time.sleep(self._random.uniform(0.5, 1.5))
        names = self._random.choice((".swap", ".swap", ".cleaned", ".deleted"))
        cleaned_files.wait_for(self.cluster.log_dir(broker_id), names, _WATCHED_S)
        self.cluster.kill(broker_id)
        self._come_back(broker_id, "killed during a cleaning")

    def _come_back(self, broker_id: int, what: str) -> None:
        self.left.update(cleaned_files.suffixes(self.cluster.log_dir(broker_id)))
        self.done[what] += 1
        time.sleep(self._random.choice((0.0, 0.0, 0.5, 4.0)))
        self.cluster.kctl("restart", str(broker_id))

    def _restart(self, broker_id: int) -> None:
        time.sleep(self._random.uniform(0.5, 2.0))
        self.cluster.kctl("restart", str(broker_id))
        self.done["restarted"] += 1

    def _switch_policy(self) -> None:
        policy = self._random.choice(("compact", "delete", "compact,delete"))
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, _SWITCHED.topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def _plant(self, *, is_last: bool = False) -> None:
        """Stop the cluster and write transactions into the replicas of one partition."""
        self.cluster.kctl("stop")
        name = "{}-{}".format(*_TRANSACTIONS)
        replicas = [self.cluster.log_dir(broker_id) / name for broker_id in self._brokers]
        self.transactions.plant(replicas, is_last=is_last)
        self.cluster.kctl("start")
        self._in_sync()

    def _replace_a_writer(self) -> None:
        """Let a new producer, with an id of its own, go on where another ended."""
        index = self._random.randrange(len(self.writers))
        old = self.writers[index]
        old.end()
        self._acknowledged_before += old.acknowledged_count
        self.writers[index] = self._writer(old.partition, old.how)

    # Checks

    def _ends(self) -> Mapping[Place, int]:
        high_watermarks = keyed_reading.high_watermarks(self.address, self.partitions)
        ends = {
            place: partition.end_to_read(high_watermarks[place])
            for place, partition in self.partitions.items()
        }
        return ends | {_TRANSACTIONS: self.transactions.last_stable_offset}

    def _stable_end(self, partition: KeyedPartition) -> int:
        if partition.place == _TRANSACTIONS:
            return self.transactions.stable_end
        return len(partition.records)

    def _read(self) -> dict[Place, list[Read]]:
        """Read everything in less than delete.retention.ms.

        A slower consumer may see a value, and not the tombstone behind it: it is gone by then.
        """
        for _ in range(_READINGS_MAX):
            began_s = time.monotonic()
            read = consume(self.address, self._ends())
            if time.monotonic() - began_s < DELETE_RETENTION_MS / 1000:
                return read
        raise AssertionError("no consumer is quick enough for delete.retention.ms")

    def check(self) -> int:
        """Read everything, of which nothing is under way; returns the number of records."""
        read = self._read()
        starts = start_offsets(self.address, self.partitions)
        now_ms = int(time.time() * 1000)
        problems = []
        for place, partition in self.partitions.items():
            end = self._stable_end(partition)
            problems += partition.problems(read[place], starts[place], end, now_ms)
        assert not problems, problems[:10]
        faults = self.faults()
        assert not faults, faults[:10]
        return sum(map(len, read.values()))

    def faults(self) -> list[str]:
        """Return what brokers wrote that none should have to say."""
        return [
            line
            for broker_id in self._brokers
            for line in self.cluster.said(broker_id).splitlines()
            if any(word in line for word in _FAULTS)
        ]

    def finish(self, tools: JavaTools | None) -> str:
        """Stop everything, check all files of all brokers, and return what was seen."""
        for writer in self.writers:
            writer.end()
        self._plant(is_last=True)
        records = self.check()
        self._ledger.check(self.cluster.pids())
        cleanings = sum(len(_CLEANED.findall(self.cluster.said(b))) for b in self._brokers)
        self.cluster.kctl("stop")
        segments = 0
        for broker_id in self._brokers:
            log_dir = self.cluster.log_dir(broker_id)
            self._check_files(log_dir)
            segments += cleaned_files.verify(log_dir, tools)
        assert cleanings, "nothing was cleaned"
        done = ", ".join(f"{count} {what}" for what, count in sorted(self.done.items()))
        left = ", ".join(f"{count} {suffix}" for suffix, count in sorted(self.left.items()))
        return (
            f"{done}; files that kills left: {left}; {self.acknowledged_count} records "
            f"acknowledged, {self.transactions.committed_count} transactions committed and "
            f"{self.transactions.aborted_count} aborted; {cleanings} cleanings; {records} records "
            f"left; every key has its last value, in all replicas; {segments} segments read by "
            f"{'us and by Kafka' if tools else 'us'}"
        )

    def _check_files(self, log_dir: Path) -> None:
        now_ms = int(time.time() * 1000)
        for place, partition in self.partitions.items():
            path = log_dir / "{}-{}".format(*place)
            start = cleaned_files.start_offset(log_dir, place)
            read = read_files(path)
            problems = partition.problems(read, start, len(partition.records), now_ms)
            assert not problems, (str(log_dir), problems[:10])

    def destroy(self) -> None:
        """Stop the cluster and remove it."""
        self.cluster.kctl("destroy", "-y")


def run(folder: Path, brokers: int, seed: int, *, minutes: float, port: int = 0) -> str:
    """Run cycles for so long; any broken claim is an AssertionError, which leaves the files."""
    soak = CleanSoak(folder, brokers, seed, port)
    end_s = time.monotonic() + minutes * 60
    cycles = 0
    while time.monotonic() < end_s:
        soak.cycle()
        cycles += 1
        print(f"{cycles} cycles held, {soak.acknowledged_count} acknowledged", flush=True)
    said = soak.finish(JavaTools.found())
    soak.destroy()
    return said


def main() -> int:
    """Run by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    requested = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-clean-"))
    print(f"{requested.brokers} brokers, seed {requested.seed}, data in {folder}", flush=True)
    print(
        run(
            folder,
            requested.brokers,
            requested.seed,
            minutes=requested.minutes,
            port=requested.port,
        )
    )
    folder.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
