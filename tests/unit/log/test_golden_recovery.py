"""What our start makes of logs that a real broker recovered: the same ends and the same files."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.host.memory import MemoryFiles
from engine.log.directory.clean_shutdown import FILE_NAME as CLEAN_SHUTDOWN
from engine.log.directory.offset_checkpoint import LOG_STARTS, RECOVERY_POINTS, parse_offsets
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadRequest, SegmentOffsetOverflow, load_log
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from engine.naming import parse_topic_partition
from tests.golden_cases import GOLDEN, case_dir
from tests.unit.log.hooks import hooks_of

CASES = ("recovery-391", "recovery-430")
CONFIG = LogConfig(segment_bytes=6000, index_interval_bytes=400, segment_index_bytes=4096)
NOW_MS = 1_800_000_000_000


@cache
def truth(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / case / "truth" / "recovery.json").read_text())
    return found


def disk_of(path: Path) -> MemoryFiles:
    """Return one partition directory of a golden state, in memory at /d."""
    files = MemoryFiles()
    files.make_dir(f"/d/{path.name}")
    for found in path.iterdir():
        handle = files.open(f"/d/{path.name}/{found.name}", write=True, create=True)
        handle.append([found.read_bytes()])
    files.sync_all()
    return files


def request_of(state: Path, name: str) -> LoadRequest:
    key = parse_topic_partition(name)
    return LoadRequest(
        f"/d/{name}",
        key,
        # Producers of a golden log are older than a day by now.
        CONFIG._replace(producer_id_expiration_ms=1 << 50),
        NOW_MS,
        recovery_point=checkpoint(state, RECOVERY_POINTS).get(key, 0),
        log_start_offset=checkpoint(state, LOG_STARTS).get(key, 0),
        was_stopped_cleanly=(state / CLEAN_SHUTDOWN).exists(),
    )


def checkpoint(state: Path, name: str) -> dict[TopicPartition, int]:
    path = state / name
    return parse_offsets(path.read_bytes(), name) if path.exists() else {}


def opened(state: Path, name: str) -> tuple[MemoryFiles, LocalLog]:
    files = disk_of(state / name)
    tasks = InlineTasks()
    log, _ = load_log(files, request_of(state, name), hooks_of(tasks))
    tasks.run_waiting()
    return files, log


def sizes_of(files: MemoryFiles, topic: str) -> dict[str, int]:
    found = files.list_dir(f"/d/{topic}-0")
    return {entry: files.size_bytes(f"/d/{topic}-0/{entry}") for entry in found}


ROWS = [
    pytest.param(case, topic, id=f"{case}-{topic}")
    for case in CASES
    for topic, row in truth(case).items()
    if "fatal_to_broker" not in row
]


@pytest.mark.parametrize(("case", "topic"), ROWS)
def test_a_start_after_a_crash_ends_where_the_broker_s_did(case: str, topic: str) -> None:
    row = truth(case)[topic]
    _, log = opened(case_dir(case) / "before", f"{topic}-0")
    assert int(row["log_end_offset"]) == log.log_end_offset
    assert int(row["log_start_offset"]) == log.log_start_offset


@pytest.mark.parametrize(("case", "topic"), ROWS)
def test_a_start_after_a_crash_leaves_the_broker_s_files(case: str, topic: str) -> None:
    row = truth(case)[topic]
    files, log = opened(case_dir(case) / "before", f"{topic}-0")
    active = f"{log.active_segment.base_offset:020d}"
    # A time index that is lost below the recovery point stays empty in a broker.
    lost = {name for name, size in row["files_recovered"].items() if size == 0}
    lost = {name for name in lost if name.endswith(".timeindex")}
    assert compared(row["files_recovered"], active, lost) == compared(
        sizes_of(files, topic), active, lost
    )
    log.close(NOW_MS)
    if log_sizes(row["files_recovered"]) == log_sizes(row["files_stopped"]):
        assert compared(row["files_stopped"], left_out=lost) == compared(
            sizes_of(files, topic), left_out=lost
        )


@pytest.mark.parametrize(("case", "topic"), ROWS)
def test_a_second_start_changes_nothing(case: str, topic: str) -> None:
    state, name = case_dir(case) / "before", f"{topic}-0"
    files, first = opened(state, name)
    before = contents(files, topic)
    again = request_of(state, name)._replace(recovery_point=first.recovery_point)
    second, report = load_log(files, again, hooks_of())
    assert (first.log_start_offset, first.log_end_offset) == (
        second.log_start_offset,
        second.log_end_offset,
    )
    assert first.producers.to_entries() == second.producers.to_entries()
    assert report.truncated_bytes == 0
    assert before == contents(files, topic)


@pytest.mark.parametrize("case", CASES)
def test_a_log_that_stops_a_broker_is_one_typed_error(case: str) -> None:
    topics = [topic for topic, row in truth(case).items() if "fatal_to_broker" in row]
    assert ["r-offset-back-last"] == topics
    with pytest.raises(SegmentOffsetOverflow) as caught:
        opened(case_dir(case) / "before", "r-offset-back-last-0")
    assert caught.value.last_offset < caught.value.base_offset


CLEAN_ROWS = [
    pytest.param(case, path.name.removesuffix("-0"), id=f"{case}-{path.name}")
    for case in CASES
    for path in sorted((case_dir(case) / "clean-before").glob("r-*-0"))
]


@pytest.mark.parametrize(("case", "topic"), CLEAN_ROWS)
def test_missing_indexes_are_built_as_the_broker_does(case: str, topic: str) -> None:
    name = f"{topic}-0"
    files, log = opened(case_dir(case) / "clean-before", name)
    theirs = case_dir(case) / "clean-recovered" / name
    active = f"{log.active_segment.base_offset:020d}"
    lost = {path.name for path in theirs.glob("*.index")}
    lost -= {path.name for path in (case_dir(case) / "clean-before" / name).iterdir()}
    for path in theirs.glob("*.*index"):
        if path.stem + ".index" in lost and not path.name.startswith(active):
            assert path.read_bytes() == files.read_bytes(f"/d/{name}/{path.name}"), path.name
    for path in theirs.glob("*.log"):
        assert path.read_bytes() == files.read_bytes(f"/d/{name}/{path.name}"), path.name


def log_sizes(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if name.endswith(".log")}


def compared(
    sizes: dict[str, int], active: str = "-", left_out: Collection[str] = ()
) -> dict[str, int]:
    """Leave out what a leader adds when it takes office, and preallocated indexes."""
    return {
        name: size
        for name, size in sizes.items()
        if name not in ("leader-epoch-checkpoint", "partition.metadata", *left_out)
        and not name.endswith(".deleted")
        and not (name.startswith(active) and name.endswith(("index", "timeindex")))
    }


def contents(files: MemoryFiles, topic: str) -> dict[str, bytes]:
    names = files.list_dir(f"/d/{topic}-0")
    return {name: files.read_bytes(f"/d/{topic}-0/{name}") for name in names}
