"""A cluster of `kctl cluster start --processes`, whose brokers may be killed at any moment."""

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
    """Brokers 1, 2, …, each in a process of its own, and their store in another one."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def start(self, brokers: int, settings: Mapping[str, str], port: int = 0) -> str:
        """Make the cluster and return where clients reach it."""
        words = ["start", "--brokers", str(brokers), "--port", str(port), "--processes"]
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

    def said(self, broker_id: int) -> str:
        """Return all that a broker wrote into its log."""
        return (self.data / f"broker-{broker_id}.log").read_text(errors="replace")

    def kill(self, broker_id: int) -> None:
        """End a broker's process as `kill -9` does, without asking anybody."""
        running = json.loads((self.data / f"broker-{broker_id}.json").read_text())
        os.kill(running["pid"], signal.SIGKILL)

    def kill_store(self) -> None:
        """End the process of the store as `kill -9` does."""
        running = json.loads((self.data / "running.json").read_text())
        os.kill(running["pid"], signal.SIGKILL)
