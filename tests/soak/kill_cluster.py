"""Three brokers in processes of their own that are killed, paused and restarted during a load.

    make soak-cluster CYCLES=300      or: python -m tests.soak.kill_cluster --cycles 300 --seed 1

A cycle: one of leader, follower, controller, any broker or the metadata store is killed (SIGKILL),
paused (SIGSTOP) or restarted cleanly, while records are produced with acks=all and idempotence to
partitions of three replicas that need two in sync; it comes back, and all replicas get in sync.

What is checked (`ClusterLoad`):

1. after each cycle a consumer goes on where it was: no record is missing, repeated or out of order,
   and all that were acknowledged come;
2. no record failed, and each was acknowledged at the offset of its number;
3. in the end the same from the first record on, and the replicas are the same bytes;
4. nothing is held too much then (`HeldLedger`).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.soak.cluster_load import ClusterLoad, differing_replicas, until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.held_ledger import HeldLedger

_BROKERS = (1, 2, 3)
_PARTITIONS = 3
_TOPIC = "soak"
SESSION_MS = 3000
_SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "3000",
    "log.flush.offset.checkpoint.interval.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}
_WHO = ("leader", "follower", "controller", "broker", "store")
_WHAT = ("kill", "pause", "restart")


class ClusterSoak:
    """A cluster, a load on it, and what happens to its processes."""

    def __init__(self, data: Path, seed: int, per_s: int = 1000) -> None:
        self._random = random.Random(seed)
        self._cluster = ClusterProcesses(data)
        self.done: Counter[str] = Counter()
        address = self._cluster.start(len(_BROKERS), _SETTINGS)
        self._ledger = HeldLedger(self._cluster.log_dirs())
        self._ledger.begin(self._cluster.pids())
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        self.load = ClusterLoad(address, _TOPIC, _PARTITIONS, per_s)
        self.load.create_topic(self.admin, list(_BROKERS))
        until_in_sync(self.admin, _TOPIC, len(_BROKERS))
        self.load.start()

    def cycle(self, who: str | None = None, what: str | None = None) -> None:
        """Do something to somebody, see all come back, and check."""
        who = who or self._random.choice(_WHO)
        what = "kill" if who == "store" else what or self._random.choice(_WHAT)
        time.sleep(self._random.uniform(0.1, 0.6))
        if who == "store":
            self._kill_store()
        else:
            self._do(what, str(self._broker(who)))
        self.done[f"{what} {who}"] += 1
        until_in_sync(self.admin, _TOPIC, len(_BROKERS))
        self.load.check_seen()
        assert self.load.errors == []

    def _broker(self, who: str) -> int:
        metadata = self.admin.list_topics(_TOPIC, timeout=30)
        partition = metadata.topics[_TOPIC].partitions[self._random.randrange(_PARTITIONS)]
        if who == "leader":
            return int(partition.leader)
        if who == "follower":
            return int(self._random.choice([b for b in _BROKERS if b != partition.leader]))
        return int(metadata.controller_id) if who == "controller" else self._random.choice(_BROKERS)

    def _do(self, what: str, broker: str) -> None:
        # Within the session's timeout, or long after it: others have led then.
        away_s = self._random.choice([0.0, 0.5, SESSION_MS / 1000 + 1])
        if what == "restart":
            self._cluster.kctl("restart", broker)
            return
        self._cluster.kctl(what, broker)
        time.sleep(away_s)
        self._cluster.kctl("restart" if what == "kill" else "resume", broker)

    def _kill_store(self) -> None:
        self._cluster.kill_store()
        time.sleep(self._random.choice([0.0, 0.5, 2.0]))
        self._cluster.kctl("start")

    def finish(self) -> None:
        """End the load, and check everything from the first record on, and the bytes at rest."""
        self.load.finish()
        until_in_sync(self.admin, _TOPIC, len(_BROKERS))
        self.load.check_seen(from_start=True)
        log_dirs = [self._cluster.log_dir(broker_id) for broker_id in _BROKERS]
        end_s = time.monotonic() + 30
        while differing_replicas(log_dirs, _TOPIC, _PARTITIONS) and time.monotonic() < end_s:
            time.sleep(0.2)
        assert [] == differing_replicas(log_dirs, _TOPIC, _PARTITIONS)
        self._ledger.check(self._cluster.pids())

    def destroy(self) -> None:
        """Stop the cluster and remove it."""
        self._cluster.kctl("destroy", "-y")


def main() -> int:
    """Run the cycles that are asked for; the data is left where one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0, help="end earlier, after so long")
    parser.add_argument("--per-second", type=int, default=1000)
    requested = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-cluster-"))
    print(f"seed {requested.seed}, data in {folder}", flush=True)
    soak = ClusterSoak(folder / "data", requested.seed, requested.per_second)
    begun_s = time.monotonic()
    cycles = 0
    while cycles < requested.cycles:
        soak.cycle()
        cycles += 1
        if cycles % 10 == 0:
            print(
                f"{cycles} cycles, {time.monotonic() - begun_s:.0f} s, "
                f"{soak.load.acknowledged_count} records acknowledged",
                flush=True,
            )
        if requested.minutes and time.monotonic() - begun_s > requested.minutes * 60:
            break
    soak.finish()
    soak.destroy()
    print(f"{cycles} cycles in {time.monotonic() - begun_s:.0f} s: {dict(soak.done)}")
    print(
        f"{soak.load.acknowledged_count} records acknowledged, 0 lost, 0 repeated, order kept, "
        "replicas the same bytes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
