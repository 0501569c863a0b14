"""The machine's files, clocks and randomness behind the ports."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.errors import StorageError
from engine.host import real
from engine.host.ports import FileMissing, FileRefused, LogDirOffline
from engine.host.real import RealClock, RealEntropy, RealFiles


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "file")


def test_append_returns_where_the_bytes_went(path: str) -> None:
    file = RealFiles().open(path, write=True, create=True)
    assert file.append([b"ab", b"c"]) == 0
    assert file.append([b"de"]) == 3
    assert file.read_at(0, 100) == b"abcde"
    file.close()


def test_append_takes_more_buffers_than_one_call_of_the_kernel(path: str) -> None:
    file = RealFiles().open(path, write=True, create=True)
    file.append([b"xy"] * 3000)
    assert file.size_bytes() == 6000
    file.close()


def test_append_goes_behind_what_was_written_in_place_and_after_a_cut(path: str) -> None:
    file = RealFiles().open(path, write=True, create=True)
    file.write_at(4, b"late")
    assert file.append([b"!"]) == 8
    file.truncate(2)
    assert file.append([b"."]) == 2
    assert file.read_at(0, 10) == b"\0\0."
    file.close()


def test_a_short_write_is_finished(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: whole(fd, [parts[0][:1]], at))
    file = RealFiles().open(path, write=True, create=True)
    file.append([b"abc", bytearray(b"de")])
    assert file.read_at(0, 10) == b"abcde"
    file.close()


def test_a_short_write_of_one_buffer_is_finished(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RealFiles().open(path, write=True, create=True)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, part, at: whole(fd, part[:2], at))
    assert [file.append([b"abcde"]), file.append([memoryview(b"fgh")])] == [0, 5]
    assert file.read_at(0, 100) == b"abcdefgh"
    file.close()


def test_a_short_read_goes_on_to_the_end(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(path).write_bytes(b"abcde")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: whole(fd, min(length, 2), at))
    file = RealFiles().open(path)
    assert file.read_at(1, 9) == b"bcde"
    assert file.read_at(0, 4) == b"abcd"
    file.close()


def test_a_read_takes_memory_for_what_is_there_not_for_what_is_asked(path: str) -> None:
    Path(path).write_bytes(b"abc")
    file = RealFiles().open(path)
    assert file.read_at(1, 1 << 60) == b"bc"
    assert file.read_at(9, 1 << 60) == b""
    file.close()


def test_read_into_is_short_only_at_the_end(path: str) -> None:
    Path(path).write_bytes(b"abcde")
    file = RealFiles().open(path)
    buffer = bytearray(3)
    assert file.read_into(0, buffer) == 3
    assert buffer == b"abc"
    assert file.read_into(3, memoryview(buffer)) == 2
    assert buffer == b"dec"
    file.close()


def test_the_size_of_a_file_that_another_writer_appends_to_grows(path: str) -> None:
    Path(path).write_bytes(b"abc")
    file = RealFiles().open(path)
    with open(path, "ab") as other:
        other.write(b"de")
    assert file.size_bytes() == 5
    file.close()


def test_closing_twice_is_allowed(path: str) -> None:
    file = RealFiles().open(path, write=True, create=True)
    assert isinstance(file.fileno(), int)
    file.close()
    file.close()


def test_a_missing_file_is_named(path: str) -> None:
    with pytest.raises(FileMissing, match="file: no such file"):
        RealFiles().open(path)
    with pytest.raises(FileMissing):
        RealFiles().size_bytes(path)
    with pytest.raises(FileMissing):
        RealFiles().remove(path)
    with pytest.raises(FileMissing):
        RealFiles().list_dir(path)


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileRefused) as folder:
        RealFiles().open(str(tmp_path))
    assert folder.value.errno == errno.EISDIR
    with pytest.raises(FileRefused):
        RealFiles().open(str(tmp_path / "pipe"))


def test_a_file_used_as_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileRefused):
        RealFiles().open(str(tmp_path / "file" / "below"))
    with pytest.raises(FileRefused):
        RealFiles().make_dir(str(tmp_path / "file"))


def test_a_device_is_no_file() -> None:
    with pytest.raises(FileRefused):
        RealFiles().open("/dev/zero")


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_other_failures_take_the_directory_offline(
    path: str, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    file = RealFiles().open(path, write=True, create=True)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(LogDirOffline) as raised:
        file.append([b"x"])
    assert (raised.value.errno, raised.value.operation) == (code, "write")
    file.close()


def test_a_failed_sync_is_never_retried_as_success(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RealFiles().open(path, write=True, create=True)

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(LogDirOffline):
            file.sync()
    with pytest.raises(LogDirOffline, match="an earlier sync failed"):
        file.sync()
    file.close()


def test_rename_replaces_and_remove_takes_files_and_empty_folders(tmp_path: Path) -> None:
    files = RealFiles()
    files.make_dir(str(tmp_path / "a" / "b"))
    files.make_dir(str(tmp_path / "a" / "b"))
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"new")
    files.rename(str(tmp_path / "new"), str(tmp_path / "old"))
    assert files.read_bytes(str(tmp_path / "old")) == b"new"
    with pytest.raises(FileRefused):
        files.remove(str(tmp_path / "a"))
    files.remove(str(tmp_path / "a" / "b"))
    files.remove(str(tmp_path / "old"))
    assert files.list_dir(str(tmp_path)) == ["a"]
    assert files.is_dir(str(tmp_path / "a"))
    assert not files.exists(str(tmp_path / "old"))


def test_replace_file_is_four_steps_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    (tmp_path / "checkpoint.tmp").write_bytes(b"left by a crash, and longer")
    steps = []
    whole_sync, whole_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        steps.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}")
        whole_sync(descriptor)

    def replace(source: str, target: str) -> None:
        steps.append("rename")
        whole_replace(source, target)

    monkeypatch.setattr(real.os, "fsync", sync)
    monkeypatch.setattr(real.os, "replace", replace)
    RealFiles().replace_file(str(path), b"new")
    assert steps == ["sync checkpoint.tmp", "rename", f"sync {tmp_path.name}"]
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_modification_time_is_in_ms(path: str) -> None:
    Path(path).write_bytes(b"")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    assert RealFiles().modified_ms(path) == 1_700_000_000_123
    RealFiles().set_modified_ms(path, 1_600_000_000_456)
    assert RealFiles().modified_ms(path) == 1_600_000_000_456
    with pytest.raises(FileMissing):
        RealFiles().set_modified_ms(f"{path}-none", 1)


def test_the_space_of_a_file_system_is_that_of_any_path_in_it(path: str) -> None:
    files = RealFiles()
    with pytest.raises(FileMissing):
        files.disk_space(path)
    files.open(path, write=True, create=True).close()
    space = files.disk_space(path)
    assert 0 <= space.usable_bytes <= space.total_bytes
    assert space.total_bytes == files.disk_space(os.path.dirname(path)).total_bytes


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = RealClock()
    assert clock.monotonic_ms() <= clock.monotonic_ms()
    assert clock.wall_ms() > 1_700_000_000_000


def test_random_numbers_stay_below_their_bound() -> None:
    entropy = RealEntropy()
    assert {entropy.random_below(3) for _ in range(200)} == {0, 1, 2}
    assert entropy.random_below(1) == 0
    assert len(entropy.random_bytes(16)) == 16


def test_room_is_taken_without_changing_the_files_size(tmp_path: Path) -> None:
    file = RealFiles().open(str(tmp_path / "log"), write=True, create=True)
    file.append([b"records"])
    file.reserve(1 << 20)
    assert file.size_bytes() == 7
    taken = os.stat(tmp_path / "log").st_blocks * 512
    file.truncate(7)
    given_back = os.stat(tmp_path / "log").st_blocks * 512
    file.close()
    # A file system may not know the call; where it does, room is taken and given back.
    assert taken < 1 << 20 or given_back < 1 << 20


def test_room_that_a_full_disk_gave_in_part_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(descriptor: int, _size_bytes: int) -> int:
        os.ftruncate(descriptor, 1000)
        return errno.ENOSPC

    monkeypatch.setattr(real, "reserve_blocks", fill)
    file = RealFiles().open(str(tmp_path / "log"), write=True, create=True)
    file.append([b"records"])
    with pytest.raises(StorageError, match="reserve room"):
        file.reserve(1 << 20)
    file.close()
    assert 7 == (tmp_path / "log").stat().st_size


def test_room_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    file = RealFiles().open(str(tmp_path / "log"), write=True, create=True)
    file.append([b"records"])
    with pytest.raises(StorageError, match="reserve room"):
        file.reserve(1 << 62)
    assert file.size_bytes() == 7
    file.close()


def test_a_link_to_nothing_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(FileMissing):
        RealFiles().open(str(tmp_path / "link"))
