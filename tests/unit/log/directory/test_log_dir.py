"""What is in a log directory, and in a partition directory."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.host.ports import FileMissing
from engine.host.real import RealFiles
from engine.log.directory.log_dir import (
    NoLogDirectory,
    duplicate_partitions,
    find_log_dir,
    read_log_dir,
)
from engine.log.directory.offset_checkpoint import HIGH_WATERMARKS
from engine.log.segment_files import list_partition_files
from engine.model import TopicPartition
from engine.naming import DirectoryKind, FileKind
from tests.golden_cases import case_dir
from tests.unit.log.logs import put

HEX = "0123456789abcdef0123456789abcdef"


def disk(*names: str) -> MemoryFiles:
    """Return a disk with files of one byte; a name that ends in / is a folder."""
    files = MemoryFiles()
    for name in names:
        folder, _, last = name.rpartition("/")
        files.make_dir(f"/data/{folder}")
        if last:
            put(files, last, b"x", f"/data/{folder}")
    return files


def test_files_of_a_partition_are_sorted_by_what_they_are_for() -> None:
    zero, ten = f"{0:020d}", f"{10:020d}"
    files = disk(
        f"t-0/{zero}.log",
        f"t-0/{zero}.index",
        f"t-0/{zero}.timeindex",
        f"t-0/{ten}.log",
        f"t-0/{ten}.snapshot",
        f"t-0/{20:020d}.index",
        f"t-0/{5:020d}.log.deleted",
        f"t-0/{5:020d}.index.swap",
        "t-0/leader-epoch-checkpoint",
        "t-0/leader-epoch-checkpoint.tmp",
        f"t-0/{zero}.index.tmp",
        f"t-0/{9:020d}-0000000003.checkpoint",
        "t-0/notes.txt",
        "t-0/folder/",
    )
    found = list_partition_files(files, "/data/t-0")
    assert [(s.base_offset, set(s.sizes)) for s in found.segments] == [
        (0, {FileKind.LOG, FileKind.INDEX, FileKind.TIMEINDEX}),
        (10, {FileKind.LOG}),
    ]
    assert found.log_bytes == 2
    assert found.snapshots == {10: 1}
    assert [orphan.base_offset for orphan in found.orphans] == [20]
    assert [leftover.name for leftover in found.leftovers] == [
        f"{zero}.index.tmp",
        f"{5:020d}.index.swap",
        f"{5:020d}.log.deleted",
        "leader-epoch-checkpoint.tmp",
    ]
    assert [checkpoint.epoch for checkpoint in found.checkpoints] == [3]
    assert found.side_files == {"leader-epoch-checkpoint": 1}
    assert found.unknown == ("folder", "notes.txt")


def test_a_file_that_goes_away_meanwhile_is_left_out() -> None:
    files = disk(f"t-0/{0:020d}.log", f"t-0/{1:020d}.log")
    files.fail("stat", 2, path_end=f"{1:020d}.log")
    assert len(list_partition_files(files, "/data/t-0").segments) == 1


def test_a_log_directory_is_its_partitions_and_its_state() -> None:
    files = disk(
        "a-0/",
        "a-b-12/",
        f"gone-3.{HEX}-delete/",
        "lost+found/",
        ".lock",
        "bootstrap.checkpoint",
        "remote-log-index-cache/",
        "cleaner-offset-checkpoint.tmp",
        "b-0",
    )
    put(files, HIGH_WATERMARKS, b"0\n1\na 0 17\n", "/data")
    put(files, "meta.properties", b"version=0\nbroker.id=7\n", "/data")
    put(files, ".kafka_cleanshutdown", b"", "/data")
    found = read_log_dir(files, "/data")
    assert [p.name for p in found.partitions] == ["a-0", "a-b-12", f"gone-3.{HEX}-delete"]
    assert found.partitions[2].directory.kind is DirectoryKind.DELETE
    assert found.unknown == ("b-0", "lost+found")
    state = found.state
    assert (state.meta.node_id, state.is_locked) == (7, True)
    assert state.clean_shutdown is not None
    assert state.offset(HIGH_WATERMARKS, TopicPartition("a", 0)) == 17
    assert state.offset(HIGH_WATERMARKS, TopicPartition("a", 1)) is None
    assert state.offset("none", None) is None
    assert state.problems == ()


def test_a_damaged_file_costs_only_what_it_says() -> None:
    files = disk("a-0/", HIGH_WATERMARKS, "meta.properties", ".kafka_cleanshutdown")
    put(files, "meta.properties", b"version=9", "/data")
    found = read_log_dir(files, "/data")
    assert len(found.state.problems) == 3
    assert found.state.meta is None
    assert found.state.clean_shutdown is not None  # the file is there, that is what it says
    assert len(found.partitions) == 1


def test_one_partition_stands_for_itself_with_the_state_around_it() -> None:
    files = disk(f"a-0/{0:020d}.log", f"b-0/{0:020d}.log")
    put(files, HIGH_WATERMARKS, b"0\n1\na 0 17\n", "/data")
    for path in ("/data/a-0", "/data/a-0/", "/data/b-0/../a-0"):
        found = find_log_dir(files, path)
        assert [p.name for p in found.partitions] == ["a-0"]
        assert found.state.offset(HIGH_WATERMARKS, TopicPartition("a", 0)) == 17


def test_a_copy_under_another_name_is_a_partition_too() -> None:
    (partition,) = find_log_dir(disk(f"backup/{0:020d}.log"), "/data/backup").partitions
    assert (partition.name, partition.topic_partition) == ("backup", None)


def test_a_directory_with_nothing_of_kafkas_is_refused() -> None:
    with pytest.raises(NoLogDirectory):
        find_log_dir(disk("lost+found/", "x"), "/data")
    with pytest.raises(FileMissing):
        find_log_dir(MemoryFiles(), "/none")


def test_two_live_copies_of_a_partition_are_found() -> None:
    files = disk("one/a-0/", "one/b-0/", "two/a-0/", f"two/b-0.{HEX}-future/")
    dirs = [read_log_dir(files, f"/data/{name}") for name in ("one", "two")]
    assert duplicate_partitions(dirs) == {
        TopicPartition("a", 0): ["/data/one/a-0", "/data/two/a-0"]
    }


@pytest.mark.parametrize(
    ("case", "state", "partitions", "version"),
    [
        ("plain", "data", 7, 0),
        ("recovery-391", "before", 38, 0),
        ("kraft-430", "killed/node2", 6, 1),
    ],
)
def test_directories_of_real_brokers_hold_nothing_unknown(
    case: str, state: str, partitions: int, version: int
) -> None:
    found = find_log_dir(RealFiles(), str(case_dir(case) / state))
    assert len(found.partitions) == partitions
    assert found.state.meta.version == version
    assert (found.unknown, found.state.problems) == ((), ())
    assert all(partition.files.unknown == () for partition in found.partitions)
