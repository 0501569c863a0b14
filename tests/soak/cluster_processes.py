"""A cluster of `kctl cluster start`, whose brokers may be killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_KCTL = [sys.executable, "-m", "kctl"]
_TIMEOUT_S = 120


class ClusterProcesses:
    """Brokers 1, 2, …, each in a process of its own, and their store in another one.

    Or all in one process, with `is_one_process`: brokers cannot be killed alone then.
    """

    def __init__(self, data: Path, *, is_one_process: bool = False) -> None:
        self.data = data
        self._is_one_process = is_one_process

    def start(self, brokers: int, settings: Mapping[str, str], port: int = 0) -> str:
        """Make the cluster and return where clients reach it."""
        words = ["start", "--brokers", str(brokers), "--port", str(port)]
        if not self._is_one_process:
            words.append("--processes")
        for name, value in settings.items():
            words += ["--set", f"{name}={value}"]
        self.kctl(*words)
        return str(self.status()["bootstrap_servers"])

    def kctl(self, *words: str) -> str:
        """Run a command of `kctl cluster`, which has to succeed."""
        return self._run("cluster", *words)

    def znode(self, path: str) -> dict[str, Any]:
        """Return a node of the store with its stat."""
        node: dict[str, Any] = json.loads(self._run("znode", "get", path, "-o", "json"))
        return node

    def _run(self, *words: str) -> str:
        command = [*_KCTL, *words, "--data", str(self.data)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def status(self) -> dict[str, Any]:
        """Return what `kctl cluster status` says."""
        found: dict[str, Any] = json.loads(self.kctl("status", "-o", "json"))
        return found

    def log_dir(self, broker_id: int) -> Path:
        """Return where a broker keeps its partitions."""
        return self.data / f"broker-{broker_id}"

    def log_dirs(self) -> list[Path]:
        """Return where all brokers keep their partitions."""
        return sorted(path for path in self.data.glob("broker-*") if path.is_dir())

    def pids(self) -> dict[str, int]:
        """Return the processes of the brokers that run now, by name."""
        if self._is_one_process:
            return {"all brokers": _pid_in(self.data / "running.json")}
        return {path.stem: _pid_in(path) for path in sorted(self.data.glob("broker-*.json"))}

    def said(self, broker_id: int) -> str:
        """Return all that a broker wrote into its log."""
        return (self.data / f"broker-{broker_id}.log").read_text(errors="replace")

    def kill(self, broker_id: int) -> None:
        """End a broker's process as `kill -9` does, without asking anybody."""
        os.kill(_pid_in(self.data / f"broker-{broker_id}.json"), signal.SIGKILL)

    def kill_store(self) -> None:
        """End the process of the store as `kill -9` does."""
        os.kill(_pid_in(self.data / "running.json"), signal.SIGKILL)


def _pid_in(path: Path) -> int:
    """Return the process that one of the cluster's own files names."""
    pid: int = json.loads(path.read_text())["pid"]
    return pid
