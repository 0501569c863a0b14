"""kctl as a process, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.cli.fork_server import NOT_FORKED, ForkServer

KCTL = [sys.executable, "-m", "kctl"]
#: Compiled code is kept here for all: a broker that finds none compiles it, for seconds of CPU.
_CACHE = os.path.join(tempfile.gettempdir(), f"kctl-tests-{os.getuid()}")


class Shell:
    """Runs kctl with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KCTL_", "XDG_"))}
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_CACHE_HOME": _CACHE,
        }

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in a fork of a process that has imported kctl."""
        if words and words[0] not in NOT_FORKED and self._is_as_ours():
            code, out, err = ForkServer.of_this_process().run(
                list(words), self.environment, stdin.encode()
            )
            return subprocess.CompletedProcess([*KCTL, *words], code, _text(out), _text(err))
        return subprocess.run(
            [*KCTL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )

    def _is_as_ours(self) -> bool:
        """Return whether an interpreter with the environment would begin as this one did."""
        return all(
            self.environment.get(name) == os.environ.get(name)
            for name in {*self.environment, *os.environ}
            if name.startswith(("PYTHON", "LC_", "LANG"))
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
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _text(content: bytes) -> str:
    return content.decode().replace("\r\n", "\n").replace("\r", "\n")
