"""Folders for the time of a block: where they are, that they go, and what if there is no place."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from engine.analysis.local_query import spill_folder
from engine.host.protobuf_compiler import compile_protobuf
from engine.host.temporary import NoTemporaryFolder, temporary_folder


def test_a_folder_goes_with_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
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
    if is_full:
        monkeypatch.setattr(os, "mkdir", _full)
    else:
        monkeypatch.setattr(tempfile, "gettempdir", _no_place)
    reason = "No space left" if is_full else "No usable temporary directory"
    with pytest.raises(NoTemporaryFolder, match=reason), temporary_folder("kctl-"):
        raise AssertionError
    with spill_folder() as folder:
        assert folder == ""
    with pytest.raises(NoTemporaryFolder, match=reason):
        compile_protobuf({}, "none.proto")
