"""One noun of kctl on logs: a copy of those of a broker of Kafka, or of an embedded cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.golden_cases import case_dir

#: How the brokers of a cluster run: all in one process, or each in its own.
EACH_WAY = pytest.mark.parametrize("processes", [(), ("--processes",)], ids=["one", "processes"])


class LogShell(Shell):
    """Runs the commands of a noun; `logs` is a copy of a case's log directory."""

    def __init__(self, home: Path, noun: str, case: str, folder: str) -> None:
        super().__init__(home)
        self._noun = noun
        self.logs = str(copytree(case_dir(case) / folder, home / "logs"))

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Return what a command of the noun prints, which ends well."""
        found: list[dict[str, Any]] = json.loads(self.ok(self._noun, *words, "-o", "json"))
        return found

    def told(self, code: int, *words: str) -> str:
        """Return what a command of the noun says on stderr, which ends with a code."""
        done = self.run(self._noun, *words)
        assert code == done.returncode, done.stderr
        return done.stderr

    def offsets(self, path: str) -> list[int]:
        """Return the offsets of the records of a log."""
        files = [str(file) for file in sorted(Path(path).glob("*.log"))]
        lines = self.ok("dump-log", *files, "-o", "ndjson").splitlines()
        return [json.loads(line)["offset"] for line in lines]

    @contextmanager
    def cluster(self, *options: str) -> Iterator[None]:
        """Have an embedded cluster run."""
        self.ok("cluster", "start", "--port", "0", *options)
        try:
            yield
        finally:
            self.run("cluster", "destroy", "-y")

    def broker_dir(self, broker_id: int) -> Path:
        """Return the log directory of a broker of the embedded cluster."""
        return self.home / f"data/kctl/cluster/broker-{broker_id}"
