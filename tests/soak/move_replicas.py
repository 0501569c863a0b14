"""Replicas moved during a load: whole jobs, given up, killed, taken back; nothing is lost.

    make soak-moves                    three brokers in processes, then five
    python -m tests.soak.move_replicas --brokers 5
    python -m tests.soak.move_replicas --address HOST:PORT   a running cluster; no broker is killed

Each step moves the load's topic and some ballast by `kctl`, as an operator would. After each:

1. the command ended as it should, and partitions are where they should be;
2. no throttle is left, nothing is out of sync (`kctl check --strict`);
3. a consumer has seen all that was acknowledged, once and in order (`ClusterLoad`).

Two executions at once, and cancels by three tools, are in `interference.py`.

In the end the same from the first record on, and brokers hold nothing too much (`HeldLedger`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from tests.soak.cluster_load import DEADLINE_S, ClusterLoad
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.held_ledger import HeldLedger

KCTL = [sys.executable, "-m", "kctl"]
MOVED, BALLAST = "moved", "ballast"
_PARTITIONS = 6
_SLOW = "1MB"
_SESSION = "zookeeper.session.timeout.ms=3000"


class MoveSoak:
    """A cluster, a load on it, and the steps."""

    def __init__(self, folder: Path, address: str | None, broker_count: int) -> None:
        self.folder = folder
        self._data = str(folder / "cluster")
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
        self._is_ours = address is None
        if address is None:
            words = ("--brokers", str(broker_count), "--port", "0", "--processes")
            words = (*words, "--log-dirs", "2")
            settings = ("--set", _SESSION, "--set", "auto.leader.rebalance.enable=false")
            self.kctl("cluster", "start", "--data", self._data, *words, *settings)
            status = self.json("cluster", "status", "--data", self._data)
            address = str(status["bootstrap_servers"])
            self._processes = ClusterProcesses(Path(self._data))
            self._ledger = HeldLedger(self._processes.log_dirs())
            self._ledger.begin(self._processes.pids())
        self._address = address
        self._admin = AdminClient({"bootstrap.servers": address})
        self.brokers = [row["broker_id"] for row in self.json("brokers", "list", *self.where)]
        self._load = ClusterLoad(address, MOVED, _PARTITIONS, per_s=1000)

    @property
    def where(self) -> tuple[str, str]:
        """Return the options that say which cluster it is."""
        return "-b", self._address

    def start(self) -> None:
        """Make the topics, and begin to produce."""
        first = self.brokers[:2]
        self._load.create_topic(self._admin, first)
        # So many that each broker has some of it: what is drained takes long enough to be seen.
        words = ("-p", "10", "-r", "2", "--if-not-exists", *self.where)
        self.kctl("topics", "create", BALLAST, *words)
        lines = "".join(f"{number:0999}\n" for number in range(60_000))
        self.kctl("produce", BALLAST, *self.where, stdin=lines)
        self._load.start()

    # kctl

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kctl to its end."""
        return subprocess.run(
            [*KCTL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )

    def kctl(self, *words: str, stdin: str = "") -> str:
        """Run kctl, which must do it."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str) -> Any:
        """Run kctl and return what it says."""
        return json.loads(self.kctl(*words, "-o", "json"))

    def replicas(self) -> dict[tuple[str, int], list[int]]:
        """Return where all partitions are."""
        topics = self.json("topics", "describe", MOVED, BALLAST, *self.where)
        return {
            (topic["name"], row["partition"]): row["replicas"]
            for topic in topics
            for row in topic["partitions"]
        }

    def directories(self) -> dict[tuple[int, str, int], str]:
        """Return in which directory of its broker each replica is."""
        words = ("--replicas", "--topic", MOVED, "--topic", BALLAST, *self.where)
        rows = self.json("brokers", "log-dirs", *words)
        assert not any(row["is_future"] for row in rows)
        return {(row["broker_id"], row["topic"], row["partition"]): row["path"] for row in rows}

    def crossed_plan(self) -> tuple[str, dict[tuple[int, str, int], str]]:
        """Have every replica go to the next directory of its broker; its file, and what it says."""
        paths: dict[int, list[str]] = {}
        for row in self.json("brokers", "log-dirs", *self.where):
            paths.setdefault(row["broker_id"], []).append(row["path"])
        wanted = {
            key: paths[key[0]][(paths[key[0]].index(path) + 1) % len(paths[key[0]])]
            for key, path in self.directories().items()
        }
        partitions = [
            {
                "topic": topic,
                "partition": partition,
                "replicas": ids,
                "log_dirs": [wanted[id_, topic, partition] for id_ in ids],
            }
            for (topic, partition), ids in self.replicas().items()
        ]
        path = self.folder / f"{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return str(path), wanted

    def plan(self, *words: str) -> str:
        """Make a plan and return its file."""
        path = str(self.folder / f"{time.monotonic_ns()}.json")
        self.kctl("reassign", "plan", MOVED, BALLAST, *words, "--out", path, *self.where)
        return path

    def begin(self, path: str) -> subprocess.Popen[bytes]:
        """Begin to execute a plan, slowly, and return once something moves."""
        words = ("execute", path, "-y", "--throttle", _SLOW, "--moves-per-broker", "1")
        executing = self.beside(*words)
        end_s = time.monotonic() + DEADLINE_S
        while not self.json("reassign", "status", *self.where):
            assert time.monotonic() < end_s
            said = (self.folder / "beside.log").read_text()
            assert executing.poll() is None, f"nothing had to be moved: {said}"
        return executing

    def beside(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin to run a command of `kctl reassign`."""
        with (self.folder / "beside.log").open("w") as said:
            return subprocess.Popen(
                [*KCTL, "reassign", *words, *self.where],
                env=self.environment,
                stdout=said,
                stderr=said,
            )

    # Steps

    def step(self, name: str, do: Callable[[], None]) -> None:
        """Do a step and look whether all is as it should be."""
        began_s = time.monotonic()
        do()
        words = ("check", "--wait", "--timeout", str(DEADLINE_S), "--strict", *self.where)
        checked = self.run(*words, "--ignore", "not-preferred", "--ignore", "impossible-min-isr")
        assert checked.returncode == 0, (name, checked.stdout, checked.stderr)
        self._load.check_seen()
        took_s = time.monotonic() - began_s
        print(f"{name}: {took_s:.0f} s, {self._load.acknowledged_count} acknowledged", flush=True)

    def spread(self) -> None:
        """Use all brokers."""
        self.kctl("reassign", "execute", self.plan("--balance"), "-y", *self.where)
        assert set(self.brokers) == {id_ for ids in self.replicas().values() for id_ in ids}

    def drain(self) -> None:
        """Empty the last broker of these topics."""
        last = self.brokers[-1]
        words = ("-y", "--throttle", "50MB", *self.where)
        self.kctl("reassign", "execute", self.plan("--drain", str(last)), *words)
        assert all(last not in ids for ids in self.replicas().values())

    def grow_and_shrink(self) -> None:
        """Have three replicas, then two again."""
        for factor in (3, 2):
            self.kctl("topics", "set-rf", str(factor), MOVED, BALLAST, "-y", *self.where)
            assert {factor} == {len(ids) for ids in self.replicas().values()}

    def replace(self) -> None:
        """Give what one broker has to the empty one."""
        pair = f"{self.brokers[0]}:{self.brokers[-1]}"
        path = self.plan("--replace", pair)
        self.kctl("reassign", "execute", path, "-y", *self.where)
        assert all(self.brokers[0] not in ids for ids in self.replicas().values())

    def demote(self) -> None:
        """Take leadership from a broker, and bring it back."""
        before = self.replicas()
        broker = str(before[MOVED, 0][0])
        self.kctl("leaders", "demote", broker, "-y", *self.where)
        assert all(str(ids[0]) != broker for ids in self.replicas().values())
        self.kctl("leaders", "demote", broker, "--back", "-y", *self.where)
        assert before == self.replicas()

    def cancel(self) -> None:
        """Begin to drain a broker, interrupt it, take it back."""
        path = self.plan("--drain", str(self.brokers[1]))
        executing = self.begin(path)
        executing.send_signal(signal.SIGINT)
        assert executing.wait() == 130
        self.kctl("reassign", "cancel", f"{path}.journal", "-y", *self.where)

    def roll_back(self) -> None:
        """Drain a broker, then bring everything back."""
        before = self.replicas()
        path = self.plan("--drain", str(self.brokers[1]))
        self.kctl("reassign", "execute", path, "-y", *self.where)
        assert before != self.replicas()
        self.kctl("reassign", "rollback", f"{path}.journal", "-y", *self.where)
        assert before == self.replicas()

    def change_directories(self) -> None:
        """Have every replica change its directory, interrupted once; then bring all back."""
        before = self.directories()
        path, wanted = self.crossed_plan()
        executing = self.beside("execute", path, "-y", "--log-dirs-throttle", _SLOW)
        end_s = time.monotonic() + DEADLINE_S
        while not Path(f"{path}.journal").exists():
            assert time.monotonic() < end_s
            time.sleep(0.01)
        time.sleep(1)
        executing.kill()
        executing.wait()
        self.kctl("reassign", "resume", f"{path}.journal", *self.where)
        assert wanted == self.directories()
        self.kctl("reassign", "rollback", f"{path}.journal", "-y", *self.where)
        assert before == self.directories()

    def kill_kctl(self) -> None:
        """Kill kctl while something moves; resume."""
        drained = self.brokers[1]
        path = self.plan("--drain", str(drained))
        executing = self.begin(path)
        executing.kill()
        executing.wait()
        self.kctl("reassign", "resume", f"{path}.journal", *self.where)
        assert all(drained not in ids for ids in self.replicas().values())

    def kill_broker(self, who: str) -> None:
        """Kill a broker that takes part, or the controller, while something moves."""
        path = self.plan("--balance")
        executing = self.begin(path)
        status = self.json("cluster", "status", "--data", self._data)
        (row, *_) = self.json("reassign", "status", *self.where) or [None]
        victim = status["controller_id"]
        if who != "controller" and row is not None:
            victim = (row["adding"] or row["target"])[0] if who == "target" else row["leader"]
        self.kctl("cluster", "kill", str(victim), "--data", self._data)
        time.sleep(5)
        self.kctl("cluster", "restart", str(victim), "--data", self._data)
        # What was throttled on the dead broker is taken away by a resume at the latest.
        if executing.wait(DEADLINE_S * 3) != 0:
            self.kctl("reassign", "resume", f"{path}.journal", *self.where)

    def all_steps(self) -> None:
        """Do every step in turn."""
        # It needs what is here.
        from tests.soak.interference import Interference

        self.step("spread", self.spread)
        self.step("drain", self.drain)
        self.step("replace", self.replace)
        self.step("replication factor up and down", self.grow_and_shrink)
        self.step("demote and back", self.demote)
        self.step("roll back", self.roll_back)
        self.step("cancel", self.cancel)
        self.step("kctl killed", self.kill_kctl)
        Interference(self).all_steps()
        if len(self.json("brokers", "log-dirs", str(self.brokers[0]), *self.where)) > 1:
            self.step("other directories and back", self.change_directories)
        if self._is_ours:
            for who in ("target", "leader", "controller"):
                self.step(f"{who} killed", lambda who=who: self.kill_broker(who))  # type: ignore[misc]
                self.step("drain again", self.kill_kctl)
        self.step("spread again", self.spread)
        self._load.finish()
        self._load.check_seen(from_start=True)
        if self._is_ours:
            self._ledger.check(self._processes.pids())
        print(
            f"{self._load.acknowledged_count} acknowledged, 0 lost, 0 twice, in order", flush=True
        )

    def stop(self) -> None:
        """Remove a cluster that was made here."""
        if self._is_ours:
            self.run("cluster", "destroy", "-y", "--data", self._data)


def main() -> None:
    """Run all steps; the first that is not as it should be ends it with its reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--address")
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kctl-moves-") as folder:
        soak = MoveSoak(Path(folder), requested.address, requested.brokers)
        try:
            soak.start()
            soak.all_steps()
        finally:
            soak.stop()


if __name__ == "__main__":
    main()
