"""Links that are read, and copied before their first change: the source never changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.ports import File, FileRefused
from engine.host.real import RealFiles


class Linked:
    """A source file and a link to it."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source"
        self.source.write_bytes(b"0123456789")
        self.path = folder / "here" / "log"
        self.path.parent.mkdir()
        self.files = CopyOnWriteFiles()
        self.files.link(str(self.source), str(self.path))

    def open(self) -> File:
        return self.files.open(str(self.path), write=True)


@pytest.fixture
def linked(tmp_path: Path) -> Linked:
    return Linked(tmp_path)


def test_reading_copies_nothing(linked: Linked) -> None:
    file = linked.open()
    buffer = bytearray(4)
    assert (10, b"234", 4) == (file.size_bytes(), file.read_at(2, 3), file.read_into(6, buffer))
    assert bytes(buffer) == b"6789"
    file.truncate(10)
    file.reserve(1 << 20)
    file.sync()
    file.close()
    assert linked.path.is_symlink()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda file: file.append([b"ab", b"c"]), b"0123456789abc"),
        (lambda file: file.write_at(2, b"xy"), b"01xy456789"),
        (lambda file: file.truncate(3), b"012"),
        (lambda file: file.truncate(0), b""),
        (lambda file: file.truncate(12), b"0123456789\0\0"),
    ],
)
def test_a_change_is_made_to_a_copy(linked: Linked, change: object, expected: bytes) -> None:
    file = linked.open()
    change(file)  # type: ignore[operator]
    assert expected == file.read_at(0, 100)
    file.reserve(1 << 12)
    file.sync()
    file.close()
    assert expected == linked.path.read_bytes()
    assert not linked.path.is_symlink()
    assert os.listdir(linked.path.parent) == ["log"]
    assert linked.source.read_bytes() == b"0123456789"


def test_a_second_change_is_made_to_the_same_copy(linked: Linked) -> None:
    file = linked.open()
    assert file.append([b"a"]) == 10
    assert file.append([b"b"]) == 11
    file.close()
    again = linked.open()
    assert again.append([b"c"]) == 12
    again.close()
    assert linked.path.read_bytes() == b"0123456789abc"


def test_what_was_being_sent_stays_readable_after_a_change(linked: Linked) -> None:
    file = linked.open()
    descriptor = file.fileno()
    assert descriptor is not None
    file.append([b"a"])
    assert os.pread(descriptor, 10, 0) == b"0123456789"
    assert file.fileno() != descriptor
    file.close()


def test_a_left_over_copy_is_overwritten(linked: Linked) -> None:
    (linked.path.parent / "log.copy").write_bytes(b"x" * 100)
    file = linked.open()
    file.append([b"a"])
    file.close()
    assert linked.path.read_bytes() == b"0123456789a"


def test_renaming_and_removing_are_of_the_link(linked: Linked) -> None:
    moved = f"{linked.path}.deleted"
    linked.files.rename(str(linked.path), moved)
    linked.files.remove(moved)
    assert os.listdir(linked.path.parent) == []
    assert linked.source.read_bytes() == b"0123456789"


def test_other_files_never_write_through_a_link(linked: Linked) -> None:
    with pytest.raises(FileRefused, match="cannot write: it is a link"):
        RealFiles().open(str(linked.path), write=True)
    assert RealFiles().read_bytes(str(linked.path)) == b"0123456789"


def test_a_file_of_its_own_is_opened_as_ever(linked: Linked) -> None:
    path = str(linked.path.parent / "own")
    file = linked.files.open(path, write=True, create=True)
    file.append([b"x"])
    file.close()
    assert linked.files.read_bytes(path) == b"x"


def test_the_time_of_a_file_is_set_on_a_copy(linked: Linked) -> None:
    before = linked.source.stat().st_mtime_ns
    linked.files.set_modified_ms(str(linked.path), 1_000)
    assert before == linked.source.stat().st_mtime_ns
    assert 1_000 == linked.files.modified_ms(str(linked.path))
    assert b"0123456789" == linked.path.read_bytes()
