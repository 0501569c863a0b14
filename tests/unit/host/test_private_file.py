"""Files that hold secrets."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host.ports import FileMissing, FileRefused
from engine.host.private_file import create_file, make_private


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    create_file(str(tmp_path / "key"), b"secret")
    create_file(str(tmp_path / "certificate"), b"public", is_private=False)
    assert 0o600 == (tmp_path / "key").stat().st_mode & 0o777
    assert 0o600 & (tmp_path / "certificate").stat().st_mode
    assert b"secret" == (tmp_path / "key").read_bytes()


def test_nothing_is_overwritten_and_no_link_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("kept", "link"):
        with pytest.raises(FileRefused):
            create_file(str(tmp_path / name), b"new")
    assert b"kept" == (tmp_path / "kept").read_bytes()
    assert not (tmp_path / "elsewhere").exists()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        create_file(str(tmp_path / "none" / "key"), b"")
    assert issubclass(FileMissing, StorageError)


def test_a_file_is_made_private_whether_it_is_there_or_not(tmp_path: Path) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    kept.write_bytes(b"kept")
    kept.chmod(0o664)
    for file in (made, kept):
        make_private(str(file))
        assert 0o600 == file.stat().st_mode & 0o777
    assert (b"", b"kept") == (made.read_bytes(), kept.read_bytes())
    kept.chmod(0o400)
    make_private(str(kept))
    assert 0o400 == kept.stat().st_mode & 0o777
    # Who opens it will be told.
    make_private(str(tmp_path / "none" / "file"))


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left on device"):
        create_file(str(tmp_path / "key"), b"secret")
    assert [] == list(tmp_path.iterdir())
