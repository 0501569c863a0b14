"""Files that one process at a time holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host.held_file import FileReplaced, HeldFiles, RealHeldFiles
from engine.host.lock_file import LockHeld
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.ports import FileMissing, FileRefused

HOLDER = """
import sys, time
from engine.host.held_file import RealHeldFiles
held = RealHeldFiles().hold(sys.argv[1], create=True)
held.append(b"held\\n")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["real", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> HeldFiles:
    return RealHeldFiles() if request.param == "real" else MemoryHeldFiles()


@pytest.fixture
def path(files: HeldFiles, tmp_path: Path) -> str:
    return str(tmp_path / "f") if isinstance(files, RealHeldFiles) else "/f"


def test_a_file_is_held_once_and_again_after_it_was_let_go(files: HeldFiles, path: str) -> None:
    with pytest.raises(FileMissing):
        files.hold(path)
    held = files.hold(path, create=True)
    held.append(b"one\n")
    with pytest.raises(LockHeld):
        files.hold(path)
    # To read it, or to look whether it is held, lets go of nothing.
    assert b"one\n" == files.read_bytes(path)
    with pytest.raises(LockHeld):
        files.hold(path, create=True)
    held.close()
    held.close()
    again = files.hold(path)
    again.append(b"two\n")
    assert b"one\ntwo\n" == files.read_bytes(path)


def test_the_line_of_another_process_is_not_written_over(files: HeldFiles, path: str) -> None:
    held = files.hold(path, create=True)
    held.append(b"one\n")
    files.append(path, b"two\n")
    held.append(b"three\n")
    assert b"one\ntwo\nthree\n" == files.read_bytes(path)


def test_what_is_removed_or_replaced_is_not_written_to(tmp_path: Path) -> None:
    files, path = RealHeldFiles(), str(tmp_path / "f")
    held = files.hold(path, create=True)
    os.remove(path)
    with pytest.raises(FileReplaced, match="removed or replaced"):
        held.append(b"lost\n")
    (tmp_path / "f").write_bytes(b"other\n")
    with pytest.raises(FileReplaced):
        held.append(b"lost\n")
    assert b"other\n" == files.read_bytes(path)


def test_only_regular_files_are_held(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("pipe", "link", "."):
        with pytest.raises((FileRefused, StorageError)):
            RealHeldFiles().hold(str(tmp_path / name), create=True)
    assert ["link", "pipe"] == sorted(os.listdir(tmp_path))


def test_a_file_is_free_once_its_process_is_killed(tmp_path: Path) -> None:
    files, path = RealHeldFiles(), str(tmp_path / "f")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert "ready\n" == holder.stdout.readline()
        with pytest.raises(LockHeld):
            files.hold(path)
        holder.kill()
        holder.wait()
    held = files.hold(path)
    held.append(b"taken over\n")
    assert b"held\ntaken over\n" == files.read_bytes(path)
