"""Folders for the time of a block: where they are, that they go, and what if there is no place."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from engine.analysis.local_query import open_spill_folder
from engine.host.protobuf_compiler import compile_protobuf
from engine.host.source_files import SourceFiles
from engine.host.temporary import (
    NoTemporaryFolder,
    remove_abandoned,
    temporary_file,
    temporary_folder,
)


def test_a_folder_goes_with_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), temporary_folder("kctl-") as folder:
        (Path(folder) / "inner").mkdir()
        (Path(folder) / "inner" / "file").touch()
        raise KeyboardInterrupt
    assert Path(folder).parent == tmp_path
    assert [] == list(tmp_path.iterdir())


def _no_place() -> str:
    raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")


def _full(path: str, *_more: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


@pytest.mark.parametrize("is_full", [False, True])
def test_where_there_is_no_place_that_is_the_error(
    is_full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    if is_full:
        monkeypatch.setattr(os, "mkdir", _full)
    else:
        monkeypatch.setattr(tempfile, "gettempdir", _no_place)
    reason = "No space left" if is_full else "No usable temporary directory"
    with pytest.raises(NoTemporaryFolder, match=reason), temporary_folder("kctl-"):
        raise AssertionError
    with open_spill_folder() as folder:
        assert folder == ""
    with pytest.raises(NoTemporaryFolder, match=reason):
        compile_protobuf({}, "none.proto")


@pytest.mark.parametrize("kind", ["missing", "file", "unwritable"])
def test_no_other_place_is_taken_than_the_one_that_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own module falls back to /tmp, which may be small, and belongs to everybody."""
    place = tmp_path / "place"
    if kind == "file":
        place.touch()
    elif kind == "unwritable":
        # Nobody may write there, not even root.
        place = Path("/proc/self")
    monkeypatch.setenv("TMPDIR", str(place))
    with pytest.raises(NoTemporaryFolder, match=str(place)), temporary_folder("kctl-"):
        raise AssertionError
    with pytest.raises(NoTemporaryFolder, match=str(place)):
        temporary_file()
    remove_abandoned("kctl-")


def test_a_packed_archive_is_not_blamed_for_a_place_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz"):
        pass
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(NoTemporaryFolder, match="none"):
        SourceFiles().list_dir(str(tmp_path / "logs.tar.gz"))


def test_folders_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = """if True:
        import os, signal, sys
        from engine.host.temporary import temporary_folder
        with temporary_folder("kctl-x-") as folder:
            open(folder + "/spilled", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert -signal.SIGKILL == killed.returncode
    (left,) = tmp_path.iterdir()
    (tmp_path / "kctl-y-other").mkdir()
    (tmp_path / "kctl-x-link").symlink_to(tmp_path / "kctl-y-other")
    remove_abandoned("kctl-x-")
    # A moment ago it may have been made by a process that is about to lock it.
    assert left.exists()
    with temporary_folder("kctl-x-") as used:
        for path in (left, used):
            os.utime(path, (0, 0))
        remove_abandoned("kctl-x-")
        assert not left.exists()
        assert os.path.exists(used)
    assert ["kctl-x-link", "kctl-y-other"] == sorted(os.listdir(tmp_path))
