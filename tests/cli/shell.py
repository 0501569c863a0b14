"""kctl as a process, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

KCTL = [sys.executable, "-m", "kctl"]


class Shell:
    """Runs kctl with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KCTL_", "XDG_"))}
        self._environment = {
            **kept,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KCTL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )

    def ok(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self, *words: str) -> dict[str, Any]:
        """Return what `cluster status` prints; its exit code is 0 only for one that runs."""
        found: dict[str, Any] = json.loads(
            self.run("cluster", "status", "-o", "json", *words).stdout
        )
        return found

    def popen(self, *words: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*KCTL, *words],
            env=self._environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
