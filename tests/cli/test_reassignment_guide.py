"""The commands of the guide on moving replicas, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import Shell

GUIDE = Path(__file__).parents[2] / "docs/guides/reassignment.md"
#: What ends otherwise than well: the guide gives it up half-way, and looks at what is left.
CODES = {"timeout -s INT 4": 124}


def commands() -> list[str]:
    """Return the command lines of the guide."""
    blocks = re.findall(r"```\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
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


def test_every_command_does_what_the_guide_says(home: Shell) -> None:
    checks = 0
    try:
        for line in commands():
            # Whatever port is free.
            words = line.replace("--port 9492", "--port 0")
            done = subprocess.run(
                ["bash", "-c", words],
                cwd=home.home,
                env=home.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            wanted = next((code for start, code in CODES.items() if line.startswith(start)), 0)
            if line == "kctl check":
                checks += 1
                wanted = 4 if checks == 1 else 0
            assert wanted == done.returncode, (line, done.stdout, done.stderr)
    finally:
        home.run("cluster", "destroy", "-y")
    assert checks == 2
