"""Who holds a log directory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host.lock_file import LockHeld, is_held, lock_file

#: Somebody who is not root.
_NOBODY = 65534
_HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process_holding(path: Path) -> Iterator[None]:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate("")


def test_a_lock_is_held_while_its_process_lives(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert not is_held(str(path))
    path.touch()
    assert not is_held(str(path))
    with other_process_holding(path):
        assert is_held(str(path))
    assert not is_held(str(path))


@contextmanager
def _without_privileges() -> Iterator[None]:
    """Let the system refuse what it refuses other users than root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_lock_on_a_read_only_copy_may_be_requested() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ".lock"
        path.touch(0o444)
        Path(folder).chmod(0o555)
        with _without_privileges():
            assert not is_held(str(path))
        path.chmod(0o644)
        with other_process_holding(path):
            path.chmod(0o444)
            with _without_privileges():
                assert is_held(str(path))
        Path(folder).chmod(0o755)


def test_a_lock_is_taken_once_and_can_be_taken_again_after(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch()
    with other_process_holding(path), pytest.raises(LockHeld):
        lock_file(str(path))
    lock_file(str(path))()
    lock_file(str(path))()
    assert path.exists()


def test_others_see_a_lock_that_was_taken(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    asks = f"import sys; from engine.host.lock_file import is_held; sys.exit(3 * is_held({path!r}))"
    release = lock_file(path)
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 3
    release()
    assert subprocess.run([sys.executable, "-c", asks], check=False).returncode == 0


def test_a_directory_that_is_not_there_is_an_error_of_storage(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        lock_file(str(tmp_path / "none" / ".lock"))
