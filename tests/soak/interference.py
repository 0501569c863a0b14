"""Moves that others interfere with: two executions, cancels by three tools, dry runs in between.

```
execution A (throttled) ──┬── the same journal once more ─> refused, names the process
execution B (another topic)├── dry runs ─> what moves stays as it is
                          └── cancel by journal, by `cancel --all`, by Kafka's tool ─> A ends with 1
```

After each step `MoveSoak.step` holds that nothing is lost, out of sync or throttled.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.soak.cluster_load import DEADLINE_S
from tests.soak.move_replicas import BALLAST, KCTL, MOVED, MoveSoak

_FAILED, _PENDING = 1, 5


class Interference:
    """The steps, on the cluster of a soak."""

    def __init__(self, soak: MoveSoak) -> None:
        self._soak = soak

    def all_steps(self) -> None:
        """Do every step in turn."""
        step = self._soak.step
        step("two executions", self.two_executions)
        step("cancelled by its journal", lambda: self.cancelled(self._cancel_by_journal))
        step("cancelled with all moves", lambda: self.cancelled(self._cancel_all))
        step("cancelled by Kafka's own tool", lambda: self.cancelled(self._cancel_by_kafkas_tool))

    def two_executions(self) -> None:
        """Move two topics at the same time by two executions, with dry runs in between."""
        soak = self._soak
        first, second = self._plan(BALLAST), self._plan(MOVED)
        # Both look for moves under way before either has begun one; whichever sees the other's
        # first ends without a move.
        other = self._begin("execute", second, "-y", "--moves-per-broker", "1")
        slow = self._begin("execute", first, "-y", "--throttle", "5MB", log="beside.log")
        while not Path(f"{first}.journal").exists() and slow.poll() is None:
            time.sleep(0.01)
        if slow.poll() is None:
            self._assert_refused(soak.run("reassign", "resume", f"{first}.journal", *soak.where))
            self._dry_runs(first)
        for execution, path in ((other, second), (slow, first)):
            code = execution.wait(DEADLINE_S * 3)
            assert code in (0, _FAILED), self._output()
            if code == _FAILED:
                assert "moves already" in self._output(), self._output()
                soak.kctl("reassign", "execute", path, "-y", "--throttle", "50MB", *soak.where)
        replicas = soak.replicas()
        assert all(replicas[key] == ids for path in (first, second) for key, ids in _rows(path))

    def cancelled(self, cancel: Callable[[str], None]) -> None:
        """Begin a move, have it cancelled by somebody; the execution obeys."""
        soak = self._soak
        path = self._plan(BALLAST)
        execution = soak.begin(path)
        self._dry_runs(path)
        cancel(path)
        assert execution.wait(DEADLINE_S * 3) == _FAILED, self._output()
        assert not soak.json("reassign", "status", *soak.where)
        # By its journal it is closed already; otherwise it is open, and closed here.
        soak.run("reassign", "cancel", f"{path}.journal", "-y", *soak.where)
        assert not soak.json("reassign", "throttles", *soak.where)

    def _plan(self, topic: str) -> str:
        """Write a plan that gives each partition of a topic another last replica."""
        soak = self._soak
        partitions = []
        for (name, partition), ids in soak.replicas().items():
            if name == topic:
                free = [id_ for id_ in soak.brokers if id_ not in ids]
                replicas = [*ids[:-1], free[partition % len(free)]]
                partitions.append({"topic": name, "partition": partition, "replicas": replicas})
        path = soak.folder / f"{topic}-{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return str(path)

    # Cancels

    def _cancel_by_journal(self, path: str) -> None:
        self._soak.kctl("reassign", "cancel", f"{path}.journal", "-y", *self._soak.where)

    def _cancel_all(self, _path: str) -> None:
        self._soak.kctl("reassign", "cancel", "--all", "-y", *self._soak.where)

    def _cancel_by_kafkas_tool(self, path: str) -> None:
        """Cancel by Java's tool where its jars are, else by ours of the same name."""
        words = ["--bootstrap-server", self._soak.where[1], "--reassignment-json-file", path]
        words += ["--cancel", "--preserve-throttles"]
        libs = os.environ.get("KCTL_TEST_KAFKA_LIBS")
        tool = [*KCTL, "compat", "kafka-reassign-partitions"]
        if libs is not None:
            main = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
            tool = ["java", "-cp", f"{libs}/*", main]
        done = subprocess.run([*tool, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)

    # What changes nothing

    def _dry_runs(self, path: str) -> None:
        """Run what would change something with --dry-run; no target and no throttle changes."""
        soak = self._soak
        before = self._targets()
        throttles = soak.json("reassign", "throttles", *soak.where)
        broker = str(soak.brokers[0])
        for words in (
            ("reassign", "execute", path, "--dry-run"),
            ("brokers", "drain", broker, "--dry-run"),
            ("topics", "set-rf", "3", MOVED, "--dry-run"),
            ("leaders", "balance", "--dry-run"),
        ):
            done = soak.run(*words, *soak.where)
            assert done.returncode in (0, _FAILED, _PENDING), (words, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr, done.stderr
        after = self._targets()
        assert all(before[key] == after[key] for key in before.keys() & after.keys())
        still = soak.json("reassign", "throttles", *soak.where)
        assert _settings(throttles) >= _settings(still)

    def _targets(self) -> dict[tuple[str, int], list[int]]:
        rows = self._soak.json("reassign", "status", *self._soak.where)
        return {(row["topic"], row["partition"]): row["target"] for row in rows}

    # Processes

    def _begin(self, *words: str, log: str = "other.log") -> subprocess.Popen[bytes]:
        with (self._soak.folder / log).open("w") as output:
            return subprocess.Popen(
                [*KCTL, "reassign", *words, *self._soak.where],
                env=self._soak.environment,
                stdout=output,
                stderr=output,
            )

    def _output(self) -> str:
        names = ("beside.log", "other.log")
        return "\n".join((self._soak.folder / name).read_text() for name in names)

    def _assert_refused(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.returncode == _FAILED, (done.stdout, done.stderr)
        assert "process" in done.stderr, done.stderr


def _rows(path: str) -> list[tuple[tuple[str, int], list[int]]]:
    rows = json.loads(Path(path).read_text())["partitions"]
    return [((row["topic"], row["partition"]), row["replicas"]) for row in rows]


def _settings(throttles: Any) -> set[tuple[str, str, str]]:
    return {(row["kind"], row["name"], row["setting"]) for row in throttles}
