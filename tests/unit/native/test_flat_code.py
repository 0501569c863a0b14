"""Machine code that is kept, mapped and called; and what is not taken for it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from engine.native import flat_code
from engine.native.flat_code import flat_path, keep_flat, load_flat
from engine.native.flat_object import NotFlat, extract_flat_code

SEVEN = "define i32 @seven() { ret i32 7 }"
CALLS = "declare i32 @getpid()\ndefine i32 @calls() { %a = call i32 @getpid() ret i32 %a }"
LOOKS_UP = (
    "@table = constant [4 x i32] [i32 5, i32 6, i32 7, i32 8]\n"
    "define i32 @looks(i64 %n) { %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %n\n"
    "%a = load i32, ptr %p ret i32 %a }"
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = flat_path("seven", __file__, (Path(__file__).name,))
    if found is None:
        pytest.skip("compiled walks run on Linux alone, on x86-64 and arm64")
    return found


def test_kept_code_runs(path: str) -> None:
    assert load_flat(path) is None
    assert keep_flat(path, extract_flat_code(SEVEN, "seven"))
    address = load_flat(path)
    assert address is not None
    assert ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7


def test_the_cache_folder_is_ours_alone(path: str) -> None:
    assert keep_flat(path, b"code")
    assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0


@pytest.mark.parametrize("at", [0, 14, 64, -1])
def test_damaged_code_is_not_loaded(path: str, at: int) -> None:
    assert keep_flat(path, extract_flat_code(SEVEN, "seven"))
    content = bytearray(Path(path).read_bytes())
    content[at] ^= 1
    Path(path).write_bytes(content)
    assert load_flat(path) is None


def test_code_that_others_could_have_written_is_not_loaded(path: str) -> None:
    assert keep_flat(path, extract_flat_code(SEVEN, "seven"))
    os.chmod(path, 0o666)
    assert load_flat(path) is None


def test_a_folder_that_cannot_be_made_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = flat_path("seven", __file__, (Path(__file__).name,))
    assert path is None or not keep_flat(path, b"code")


def test_a_source_changes_the_path(tmp_path: Path, path: str) -> None:
    (tmp_path / "source").write_text("one")
    beside = str(tmp_path / "it.py")
    first = flat_path("seven", beside, ("source",))
    (tmp_path / "source").write_text("two")
    assert first != flat_path("seven", beside, ("source",))
    assert flat_path("seven", beside, ("missing",)) is None


def test_there_is_none_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_code, "_MACHINES", ())
    assert flat_path("seven", __file__, ()) is None


@pytest.mark.parametrize("text,name", [(CALLS, "calls"), (LOOKS_UP, "looks"), (SEVEN, "other")])
def test_code_that_needs_more_than_itself_is_refused(text: str, name: str) -> None:
    with pytest.raises(NotFlat):
        extract_flat_code(text, name)
