"""An embedded cluster as a process of its own, for tests with other people's clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_CLUSTER = [sys.executable, "-m", "kctl", "cluster"]


class EmbeddedCluster:
    """A cluster, of one broker by default, on a directory and free ports."""

    def __init__(self, data: Path, *, brokers: int = 1) -> None:
        self.data = data
        self.broker_ids = list(range(1, brokers + 1))
        self.address = ""
        self.pids: list[int] = []

    def start(self, *options: str, **settings: str) -> None:
        """Start it; settings are broker keys with `_` for `.`."""
        words = [
            "start",
            "--port",
            "0",
            "--brokers",
            str(len(self.broker_ids)),
            "-o",
            "json",
            *options,
        ]
        for key, value in settings.items():
            words += ["--set", f"{key.replace('_', '.')}={value}"]
        status = json.loads(self._run(*words))
        self.address = status["bootstrap_servers"]
        self.pids = status["pids"]

    def stop(self) -> None:
        """Stop it cleanly."""
        self._run("stop")

    def destroy(self) -> None:
        """Stop it and remove its data."""
        self._run("destroy", "-y")

    def status(self) -> dict[str, Any]:
        """Return what `kctl cluster status` says."""
        found: dict[str, Any] = json.loads(self._run("status", "-o", "json"))
        return found

    @staticmethod
    def run_kctl(*words: str) -> subprocess.CompletedProcess[str]:
        """Run any command of kctl to its end."""
        return subprocess.run(
            [sys.executable, "-m", "kctl", *words], capture_output=True, text=True, check=False
        )

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin a command of `kctl cluster`, and return its process."""
        command = [*_CLUSTER, *words, "--data", str(self.data)]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*_CLUSTER, *words, "--data", str(self.data)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
