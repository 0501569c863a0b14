"""Processes forked from one that has loaded its modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_forked_processes_are_detached_and_the_server_ends_before_a_fork_of_its_starter(
    tmp_path: Path,
) -> None:
    # In a process of its own: the one with the tests has threads, which must not be forked.
    log = tmp_path / "log"
    words = [sys.executable, "-m", "tests.unit.host.forking", str(log)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "True True\nTrue True\nTrue\nTrue\n" == done.stdout
    assert "a b c\nd\n" == log.read_text()


def test_the_server_ends_with_its_starter() -> None:
    # It has the standard output of its starter, which is read until both have closed it.
    starter = (
        "import os; from engine.host.fork_server import start_fork_server;"
        "start_fork_server(lambda words: 0); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", starter], check=False, capture_output=True, timeout=30
    )
    assert -9 == done.returncode
