"""What a cleaning would free is what one frees, and nothing is changed by looking."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.host.ports import FileMissing
from engine.host.unwritten_files import UnwrittenFiles
from tests.golden_cases import case
from tests.unit.forecast.compacted_dirs import cleaned, golden_directory, tried

TOPICS = tuple(sorted(case("compact")["topics"]))


def contents(path: str) -> dict[str, tuple[bytes, int]]:
    files = [file for file in Path(path).rglob("*") if file.is_file()]
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return golden_directory(tmp_path)


def test_a_trial_shows_what_a_run_does_and_changes_nothing(directory: str, tmp_path: Path) -> None:
    before = contents(directory)
    told = tried(directory, tmp_path / "trial", *TOPICS)
    assert before == contents(directory)
    assert list(cleaned(directory, *TOPICS)) == told
    assert len(told) == len(TOPICS)
    assert sum(log.freed_bytes for log in told) > 0


def test_topics_that_are_not_wanted_are_not_even_linked(directory: str, tmp_path: Path) -> None:
    (log,) = tried(directory, tmp_path / "trial", "kv-keep")
    assert ("kv-keep", 106) == (log.topic_partition.topic, log.freed_records)
    assert ["kv-keep-0"] == [p.name for p in (tmp_path / "trial").iterdir() if p.is_dir()]


def test_a_directory_of_one_partition_needs_nothing_beside_it(
    directory: str, tmp_path: Path
) -> None:
    (log,) = tried(f"{directory}/kv-keep-0", tmp_path / "trial", "kv-keep")
    assert 106 == log.freed_records


def test_what_a_broker_uses_may_be_tried(directory: str, tmp_path: Path) -> None:
    Path(directory, ".lock").touch()
    # Its end was not in order: what a crash left is recovered beside it.
    Path(directory, ".kafka_cleanshutdown").unlink(missing_ok=True)
    before = contents(directory)
    (log,) = tried(directory, tmp_path / "trial", "kv-keep")
    assert 106 == log.freed_records
    assert before == contents(directory)


def test_what_was_closed_in_order_is_not_recovered(directory: str, tmp_path: Path) -> None:
    def links_kept(trial: Path) -> int:
        tried(directory, trial, "kv-keep")
        return sum(path.is_symlink() for path in trial.rglob("*"))

    marker = Path(directory, ".kafka_cleanshutdown")
    marker.write_bytes(b'{"version":0,"brokerEpoch":1}')
    closed = links_kept(tmp_path / "closed")
    marker.unlink()
    # A recovery writes indexes again.
    assert closed > links_kept(tmp_path / "crashed")


def test_new_segments_take_no_room(directory: str, tmp_path: Path) -> None:
    tried(directory, tmp_path / "trial", "kv-keep")
    first = min((tmp_path / "trial/kv-keep-0").glob("*.log"))
    assert not first.is_symlink()
    assert (True, 0) == (first.stat().st_size > 0, first.stat().st_blocks)


def test_keys_that_do_not_fit_leave_the_rest_dirty(directory: str, tmp_path: Path) -> None:
    (log,) = tried(directory, tmp_path / "trial", "kv-drop", map_bytes=24 * 20)
    assert 1 == log.pass_count
    assert 0 < log.first_dirty_offset < log.first_uncleanable_offset
    assert log.cleanable_bytes > 0
    assert log.fault is None


def test_a_damaged_log_is_reported(directory: str, tmp_path: Path) -> None:
    first = min(Path(directory, "kv-keep-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[100] ^= 1
    first.write_bytes(content)
    damaged, good = sorted(
        tried(directory, tmp_path / "trial", "kv-keep", "kv-drop"),
        key=lambda log: log.fault is None,
    )
    assert ("kv-keep", "kv-drop") == (damaged.topic_partition.topic, good.topic_partition.topic)
    assert damaged.fault is not None


def test_unwritten_files_have_lengths_and_zeros(tmp_path: Path) -> None:
    files = UnwrittenFiles(".new")
    path = str(tmp_path / "a.new")
    with pytest.raises(FileMissing):
        files.open(path)
    file = files.open(path, write=True, create=True)
    assert (0, 3) == (file.append([b"abc"]), file.append([b"de", b"f"]))
    file.write_at(8, b"xy")
    file.write_at(0, b"xy")
    file.reserve(1 << 40)
    file.sync()
    assert (10, bytes(10), None) == (file.size_bytes(), file.read_at(0, 100), file.fileno())
    buffer = bytearray(b"123")
    assert (3, bytes(3)) == (file.read_into(0, buffer), bytes(buffer))
    file.truncate(4)
    assert 4 == os.stat(path).st_size
    file.close()
    other = files.open(str(tmp_path / "b"), write=True, create=True)
    other.append([b"abc"])
    assert b"abc" == other.read_at(0, 3)
    other.close()
