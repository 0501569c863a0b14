"""What stays in the folder of compiled code, and what goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.host.ports import FileMissing
from engine.host.real import RealClock, RealFiles
from engine.limits import KEPT_CODE_UNUSED_MS
from engine.native.code_cache import add_to_cache, kept_path, read_own_file
from engine.native.native_code import load_native

LONG_AGO_MS = KEPT_CODE_UNUSED_MS + 60_000
FILES = RealFiles()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kctl" / "native"


def kept(name: str, *, age_ms: int = 0) -> str:
    path = kept_path(name)
    assert add_to_cache(FILES, path, b"code")
    at_s = (RealClock().wall_ms() - age_ms) / 1000
    os.utime(path, (at_s, at_s))
    return path


def test_what_nobody_has_used_for_long_goes_when_something_new_is_kept(folder: Path) -> None:
    kept("walk-1.flat", age_ms=LONG_AGO_MS)
    kept("walk-1.flat.lock", age_ms=LONG_AGO_MS)
    kept("lines-1.o", age_ms=LONG_AGO_MS)
    kept("walk-2.flat", age_ms=KEPT_CODE_UNUSED_MS // 2)
    kept("walk-3.flat")
    assert ["walk-2.flat", "walk-3.flat"] == sorted(os.listdir(folder))


def test_what_is_used_stays_however_long_ago_it_was_made(folder: Path) -> None:
    path = kept("walk-1.flat", age_ms=LONG_AGO_MS)
    assert b"code" == read_own_file(FILES, path)
    kept("walk-2.flat")
    assert ["walk-1.flat", "walk-2.flat"] == sorted(os.listdir(folder))


def test_the_lock_of_what_is_being_kept_stays(folder: Path) -> None:
    kept("walk-1.flat.lock", age_ms=LONG_AGO_MS)
    kept("walk-1.flat.trial")
    assert ["walk-1.flat.lock", "walk-1.flat.trial"] == sorted(os.listdir(folder))


def test_what_is_none_of_ours_stays(folder: Path) -> None:
    kept("notes.txt", age_ms=LONG_AGO_MS)
    kept("walk-1.flat")
    assert ["notes.txt", "walk-1.flat"] == sorted(os.listdir(folder))


def test_another_process_may_have_removed_it_first(folder: Path) -> None:
    class Slow(RealFiles):
        def remove(self, path: str) -> None:
            super().remove(path)
            raise FileMissing(path)

    kept("walk-1.flat", age_ms=LONG_AGO_MS)
    kept("walk-2.flat", age_ms=LONG_AGO_MS)
    assert add_to_cache(Slow(), kept_path("walk-3.flat"), b"code")
    assert ["walk-3.flat"] == os.listdir(folder)


def test_use_in_a_folder_that_cannot_be_written_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = kept("walk-1.flat", age_ms=LONG_AGO_MS)

    def refused(_path: str) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "utime", refused)
    assert b"code" == read_own_file(FILES, path)


def test_sources_that_are_not_there_are_no_error() -> None:
    pytest.importorskip("llvmlite")
    assert load_native("lines", __file__, ("missing.py",), None) is None
