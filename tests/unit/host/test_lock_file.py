"""Whether another process holds a log directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.host.lock_file import is_held

_HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_while_its_process_lives(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert not is_held(str(path))
    path.touch()
    assert not is_held(str(path))
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    assert is_held(str(path))
    holder.communicate("")
    assert not is_held(str(path))
