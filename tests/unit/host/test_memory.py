"""The disk in memory: what a power cut leaves, and failures on demand."""

from __future__ import annotations

import errno

import pytest

from engine.host.memory import MachineStopped, ManualClock, MemoryFiles, SeededEntropy
from engine.host.ports import FileMissing, FileRefused, LogDirOffline


def disk_with(path: str, content: bytes) -> MemoryFiles:
    files = MemoryFiles()
    files.make_dir("dir")
    files.open(path, write=True, create=True).append([content])
    files.sync_all()
    return files


@pytest.mark.parametrize("operation", ["write", "truncate", "sync", "rename"])
def test_a_file_that_cannot_be_replaced_leaves_no_new_version(operation: str) -> None:
    files = disk_with("dir/f", b"old")
    files.fail(operation, errno.ENOSPC, path_end=".tmp")
    with pytest.raises(LogDirOffline, match="No space"):
        files.replace_file("dir/f", b"new")
    assert ["f"] == files.list_dir("dir")
    assert b"old" == files.read_bytes("dir/f")


def test_a_new_version_that_cannot_be_removed_hides_no_error() -> None:
    files = disk_with("dir/f", b"old")
    files.fail("write", errno.ENOSPC)
    files.fail("remove", errno.EIO)
    with pytest.raises(LogDirOffline, match="No space"):
        files.replace_file("dir/f", b"new")


def test_reads_see_writes_at_once() -> None:
    files = MemoryFiles()
    files.make_dir("/a/b")
    file = files.open("/a/b/f", write=True, create=True)
    assert file.append([b"ab", memoryview(b"cd")]) == 0
    assert file.append([b"e"]) == 4
    file.write_at(1, b"X")
    buffer = bytearray(9)
    assert file.read_into(2, buffer) == 3
    assert files.read_bytes("a/b/f") == b"aXcde"
    assert file.size_bytes() == files.size_bytes("/a/b/f") == 5
    assert files.list_dir("/a") == ["b"]
    assert files.is_dir("/a/b")
    assert file.fileno() is None


def test_unsynced_bytes_are_lost_in_a_crash() -> None:
    files = disk_with("dir/f", b"old")
    file = files.open("dir/f", write=True)
    file.append([b"+kept"])
    file.sync()
    file.append([b"+lost"])
    assert files.after_crash().read_bytes("dir/f") == b"old+kept"


def test_a_name_is_lost_when_its_folder_was_not_synced() -> None:
    files = disk_with("dir/f", b"x")
    file = files.open("dir/new", write=True, create=True)
    file.append([b"data"])
    file.sync()
    assert files.after_crash().list_dir("dir") == ["f"]
    files.sync_dir("dir")
    assert files.after_crash().read_bytes("dir/new") == b"data"


def test_a_renamed_or_removed_file_comes_back_without_a_sync_of_its_folder() -> None:
    files = disk_with("dir/f", b"x")
    files.rename("dir/f", "dir/g")
    files.remove("dir/g")
    assert files.list_dir("dir") == []
    assert files.after_crash().read_bytes("dir/f") == b"x"
    files.sync_dir("dir")
    assert files.after_crash().list_dir("dir") == []


def test_a_rename_between_folders_becomes_durable_as_a_whole() -> None:
    files = disk_with("dir/f", b"x")
    files.make_dir("other")
    files.sync_dir("/")
    files.rename("dir/f", "other/f")
    files.sync_dir("other")
    crashed = files.after_crash()
    assert (crashed.list_dir("dir"), crashed.list_dir("other")) == ([], ["f"])


def test_a_crash_may_keep_a_prefix_of_the_unsynced_changes_and_tear_the_next() -> None:
    files = disk_with("dir/f", b"")
    file = files.open("dir/f", write=True)
    file.append([b"one"])
    files.rename("dir/f", "dir/g")
    file.append([b"two"])
    file.truncate(1)
    assert files.unsynced_changes() == 4
    assert files.after_crash(kept_changes=1).read_bytes("dir/f") == b"one"
    assert files.after_crash(kept_changes=2, torn_bytes=2).read_bytes("dir/g") == b"onetw"
    assert files.after_crash(kept_changes=3, torn_bytes=2).read_bytes("dir/g") == b"onetwo"
    assert files.after_crash(kept_changes=4).read_bytes("dir/g") == b"o"


def test_a_crash_leaves_the_running_disk_as_it_was() -> None:
    files = disk_with("dir/f", b"x")
    files.after_crash().open("dir/f", write=True).append([b"y"])
    assert files.read_bytes("dir/f") == b"x"


def test_power_cut_before_operation_n_stops_everything_after_it() -> None:
    files = disk_with("dir/f", b"")
    first = files.operations
    files.stop_at(first + 1)
    file = files.open("dir/f", write=True)
    file.append([b"a"])
    with pytest.raises(MachineStopped) as raised:
        file.sync()
    assert raised.value.operation == first + 1
    with pytest.raises(MachineStopped):
        file.read_at(0, 1)
    with pytest.raises(MachineStopped):
        files.exists("dir/f")
    assert files.after_crash().read_bytes("dir/f") == b""
    assert files.after_crash(kept_changes=1).read_bytes("dir/f") == b"a"


def test_replace_file_leaves_the_old_or_the_new_at_every_cut() -> None:
    whole = disk_with("dir/checkpoint", b"old")
    first = whole.operations
    whole.replace_file("dir/checkpoint", b"new")
    assert whole.after_crash().read_bytes("dir/checkpoint") == b"new"
    for operation in range(first, whole.operations):
        files = disk_with("dir/checkpoint", b"old")
        files.stop_at(operation)
        with pytest.raises(MachineStopped):
            files.replace_file("dir/checkpoint", b"new")
        for kept in range(files.unsynced_changes() + 1):
            for torn in (0, 1):
                crashed = files.after_crash(kept_changes=kept, torn_bytes=torn)
                assert crashed.read_bytes("dir/checkpoint") in (b"old", b"new")


def test_an_operation_fails_as_often_as_set() -> None:
    files = disk_with("dir/f", b"x")
    files.fail("write", errno.ENOSPC, path_end="f", skip=1, times=2)
    file = files.open("dir/f", write=True)
    file.append([b"1"])
    for _ in range(2):
        with pytest.raises(LogDirOffline) as raised:
            file.append([b"2"])
        assert raised.value.errno == errno.ENOSPC
    file.append([b"3"])
    assert files.read_bytes("dir/f") == b"x13"


def test_a_failed_sync_loses_its_bytes_and_is_never_retried_as_success() -> None:
    files = disk_with("dir/f", b"x")
    files.fail("sync", errno.EIO)
    file = files.open("dir/f", write=True)
    file.append([b"lost"])
    with pytest.raises(LogDirOffline):
        file.sync()
    with pytest.raises(LogDirOffline):
        file.sync()
    files.open("dir/f", write=True).sync()
    assert files.after_crash().read_bytes("dir/f") == b"x"


def test_refusals_are_those_of_a_real_file_system() -> None:
    files = disk_with("dir/f", b"x")
    files.make_dir("dir/sub")
    with pytest.raises(FileMissing):
        files.open("dir/none")
    with pytest.raises(FileMissing):
        files.rename("dir/none", "dir/f")
    with pytest.raises(FileMissing):
        files.remove("dir/none")
    with pytest.raises(FileMissing):
        files.list_dir("none")
    with pytest.raises(FileMissing):
        files.modified_ms("none")
    for refused in (
        lambda: files.open("dir"),
        lambda: files.open("/"),
        lambda: files.size_bytes("dir"),
        lambda: files.make_dir("dir/f"),
        lambda: files.list_dir("dir/f"),
        lambda: files.remove("dir"),
        lambda: files.rename("dir/f", "dir/sub"),
        lambda: files.rename("dir/sub", "dir/f"),
        lambda: files.rename("dir/sub", "/dir"),
        lambda: files.open("dir/f").append([b"x"]),
    ):
        with pytest.raises(FileRefused):
            refused()


def test_modification_times_come_from_the_clock() -> None:
    clock = ManualClock(wall_ms=5000)
    files = MemoryFiles(clock=clock)
    file = files.open("f", write=True, create=True)
    clock.advance(10)
    file.append([b"x"])
    clock.jump_wall(-20)
    assert files.modified_ms("f") == 5010
    assert (clock.wall_ms(), clock.monotonic_ms()) == (4990, 10)
    files.sync_all()
    assert files.after_crash().modified_ms("f") == 5010
    files.set_modified_ms("f", 77)
    assert files.modified_ms("f") == 77


def test_files_take_their_size_from_the_space_of_the_disk() -> None:
    files = MemoryFiles()
    files.total_bytes = 10
    files.make_dir("/a")
    files.open("/a/f", write=True, create=True).append([b"abc"])
    assert files.disk_space("/a") == (10, 7)
    with pytest.raises(FileMissing):
        files.disk_space("/b")


def test_seeded_entropy_repeats_itself() -> None:
    one, two = SeededEntropy(7), SeededEntropy(7)
    assert one.random_bytes(8) == two.random_bytes(8)
    assert [one.random_below(10) for _ in range(9)] == [two.random_below(10) for _ in range(9)]


def test_power_that_comes_back_has_lost_nothing() -> None:
    files = MemoryFiles()
    files.replace_file("/kept", b"old")
    files.stop_at(files.operations + 3)
    with pytest.raises(MachineStopped):
        files.replace_file("/kept", b"new")
    assert files.has_stopped
    files.go_on()
    assert not files.has_stopped
    assert b"old" == files.read_bytes("/kept")
    assert b"new" == files.read_bytes("/kept.tmp")


def test_flipped_bits_are_read_until_the_byte_is_written_again() -> None:
    files = MemoryFiles()
    files.replace_file("/f", b"abcdef")
    handle = files.open("/f", write=True)
    files.flip("/f", 2, 0x01)
    files.flip("/f", 4, 0x80)
    assert ["/f"] == files.flipped_paths()
    buffer = bytearray(4)
    assert (b"abbd\xe5f", 4) == (handle.read_at(0, 10), handle.read_into(1, buffer))
    assert b"bbd\xe5" == buffer
    handle.write_at(1, b"BC")
    assert b"aBCd\xe5f" == handle.read_at(0, 10)
    handle.truncate(4)
    handle.append((b"ef",))
    assert (b"aBCdef", []) == (handle.read_at(0, 10), files.flipped_paths())


def test_flipped_bits_outlive_a_power_cut_and_are_not_seen_by_who_inspects() -> None:
    files = MemoryFiles()
    files.replace_file("/f", b"abc")
    files.sync_dir("/")
    files.flip("/f", 1, 0x01)
    after = files.after_crash()
    assert b"acc" == after.read_bytes("/f")
    with after.suspend_failures():
        assert b"abc" == after.read_bytes("/f")
    after.flip_back()
    assert (b"abc", b"acc") == (after.read_bytes("/f"), files.read_bytes("/f"))


def test_the_first_byte_can_be_overwritten() -> None:
    file = disk_with("f", b"abc").open("f", write=True)
    file.write_at(0, b"X")
    assert b"Xbc" == file.read_at(0, 3)
