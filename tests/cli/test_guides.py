"""The commands of the guides, each in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

GUIDES = Path(__file__).parents[2] / "docs/guides"
#: What ends otherwise than well: the guide gives it up half-way, and looks at what is left.
CODES = {"timeout -s INT 4": 124}


def commands(guide: str) -> list[str]:
    """Return the command lines of a guide."""
    blocks = re.findall(r"```\n(.*?)```", (GUIDES / guide).read_text(), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def home(tmp_path: Path) -> Shell:
    """Return a home with a command kctl."""
    shell = Shell(tmp_path)
    script = tmp_path / "bin" / "kctl"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kctl "$@"\n')
    script.chmod(0o755)
    root = str(Path(__file__).parents[2])
    shell.environment |= {
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "PYTHONPATH": root,
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    return shell


def run(home: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of a guide, with whatever port is free."""
    return subprocess.run(
        ["bash", "-c", line.replace("--port 9492", "--port 0")],
        cwd=home.home,
        env=home.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_moving_replicas(home: Shell) -> None:
    checks = 0
    try:
        for line in commands("reassignment.md"):
            done = run(home, line)
            wanted = next((code for start, code in CODES.items() if line.startswith(start)), 0)
            if line == "kctl check":
                checks += 1
                wanted = 4 if checks == 1 else 0
            assert wanted == done.returncode, (line, done.stdout, done.stderr)
    finally:
        home.run("cluster", "destroy", "-y")
    assert checks == 2


def test_sizing_topics(home: Shell) -> None:
    told = {}
    try:
        for line in commands("retention.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stderr
    finally:
        home.run("cluster", "destroy", "-y")
    assert "about 0 B of 9.8" in told["kctl retention plan clicks"]
    assert "(40.0 %) go now" in told["kctl retention plan clicks --set retention.ms=3d"]
    assert "2 partitions begin later" in told["kctl retention run"]
    # What was told to go has gone.
    exact, ran = told["kctl compact plan users --exact --chart"], told["kctl compact run users"]
    assert ran.startswith(f"{exact.partition(' of ')[0]} went, of 2 replicas")
    what_if = told["kctl compact plan clicks --set cleanup.policy=compact --exact"]
    assert what_if.startswith("about 7.")
    planned, cleaned = (
        next(told[line] for line in told if line.startswith(f"kctl compact {verb} --dir"))
        for verb in ("plan", "run")
    )
    freed = planned.splitlines()[1].partition(" of ")[0]
    assert f"{freed} went, of 1 partition" in cleaned
