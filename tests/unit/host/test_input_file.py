"""Files that are named on a command line: files and pipes, and nothing that never ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host.input_file import is_read_once, open_input, read_input
from engine.host.ports import FileMissing


def test_a_pipe_of_a_shell_is_read_to_its_end() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"version: 1\n")
    os.close(writer)
    try:
        assert b"version: 1\n" == read_input(f"/dev/fd/{reader}")
    finally:
        os.close(reader)


def test_a_file_is_read_up_to_a_byte_beyond_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_bytes(b"abcdef")
    assert b"abcdef" == read_input(str(path))
    assert b"abcd" == read_input(str(path), 3)
    with open_input(str(path)) as file:
        assert [b"abcdef"] == list(file)


def test_what_is_not_there_or_never_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read_input(str(tmp_path / "none"))
    for path in (str(tmp_path), "/dev/zero"):
        with pytest.raises(StorageError):
            read_input(path)


def test_the_null_device_is_empty(tmp_path: Path) -> None:
    assert b"" == read_input("/dev/null")
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert [True, False, False] == [
        is_read_once(name) for name in ("/dev/null", str(path), str(tmp_path / "none"))
    ]
