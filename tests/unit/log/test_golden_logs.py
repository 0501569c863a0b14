"""Real brokers' directories: healthy ones pass, damaged ones are cut where a broker cuts them.

Indexes that a broker rebuilt after a crash are rebuilt byte for byte.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.inspection.findings import Finding
from engine.inspection.repair import repair_into
from engine.inspection.repair_actions import RepairOptions, RepairPlan
from engine.inspection.repair_plan import plan_repair
from engine.inspection.verify import VerifyOptions, verify_log_dir, verify_partition
from engine.log.directory.log_dir import LogDir, PartitionFolder, find_log_dir
from engine.log.directory.offset_checkpoint import RECOVERY_POINTS
from engine.naming import FileKind
from tests.golden_cases import GOLDEN, case_dir

INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")

HEALTHY = [
    ("codecs", "data"),
    ("compact", "after1"),
    ("compact", "after2"),
    ("compact", "after3"),
    ("compact", "before1"),
    ("compact", "before2"),
    ("compact", "before3"),
    ("epochs", "divergent/broker1"),
    ("epochs", "divergent/broker2"),
    ("epochs", "divergent/broker3"),
    ("epochs", "rest/broker1"),
    ("epochs", "rest/broker2"),
    ("epochs", "rest/broker3"),
    ("formats", "data"),
    ("groups", "data"),
    ("kraft-391", "killed/node2"),
    ("kraft-391", "stopped/node1"),
    ("kraft-430", "killed/node2"),
    ("kraft-430", "stopped/node1"),
    ("plain", "data"),
    ("retention", "before"),
    ("retention", "window"),
    ("stamps", "data"),
    ("txn", "data"),
]

#: What damage each topic of the recovery cases had, and what a check must call it.
DAMAGE = {
    "untouched": set(),
    "tail-mid-size": {"torn-tail"},
    "tail-mid-magic": {"torn-tail"},
    "tail-mid-header": {"torn-tail"},
    "tail-header-only": {"torn-tail"},
    "tail-mid-record": {"torn-tail"},
    "tail-one-byte": {"torn-tail"},
    "tail-at-boundary": set(),
    "tail-zeros": {"zero-tail"},
    "tail-few-zeros": {"zero-tail"},
    "tail-garbage": {"batch-size", "bytes-skipped"},
    "crc-last": {"batch-crc"},
    "crc-mid": {"batch-crc"},
    "crc-old-segment": {"batch-crc"},
    "magic-last": {"batch-magic"},
    "length-huge-mid": {"batch-size", "bytes-skipped"},
    "length-negative-mid": {"batch-size", "bytes-skipped"},
    "length-small-mid": {"batch-size", "bytes-skipped"},
    "offset-back-last": {"offset-below-base", "offset-overlap"},
    "epoch-field-last": {"epochs-wrong"},
    "no-index": {"index-absent"},
    "no-timeindex": {"timeindex-absent"},
    "no-indexes": {"index-absent", "timeindex-absent"},
    "no-indexes-active": {"index-absent", "timeindex-absent"},
    "no-snapshots": set(),
    # An index with fewer entries than usual is right.
    "index-empty": set(),
    "index-odd-size": {"index-corrupt"},
    "index-garbage": {"index-order"},
    "index-swapped": {"index-order"},
    "timeindex-garbage": {"timeindex-order"},
    "empty-active": set(),
    "no-epochs": {"epochs-absent"},
    "txn-untouched": set(),
    "txn-no-indexes": {"index-absent", "timeindex-absent", "txnindex-absent"},
    "txn-no-txnindex": {"txnindex-absent"},
    "txn-no-snapshots": set(),
    "txn-tail-one-byte": {"torn-tail"},
}

#: What is said of records that are not there, and where some are not: behind their damage, or
#: below the high watermark that the directory's checkpoint has.
LOSS = {"offset-gap", "log-short"}
LOSSES = {
    "tail-mid-size", "tail-mid-magic", "tail-mid-header", "tail-header-only", "tail-mid-record",
    "tail-one-byte", "tail-at-boundary", "crc-last", "crc-mid", "crc-old-segment",
    "length-huge-mid", "length-negative-mid", "length-small-mid", "offset-back-last",
    "empty-active",
}  # fmt: skip


@cache
def _dir(case: str, state: str) -> LogDir:
    return find_log_dir(RealFiles(), str(case_dir(case) / state))


def _problems(found: LogDir, partition: PartitionFolder) -> list[Finding]:
    options = VerifyOptions(deep=True)
    report = verify_partition(RealFiles(), partition, found.state, options)
    return [finding for finding in report.findings if finding.is_problem]


@pytest.mark.parametrize(("case", "state"), HEALTHY)
def test_directories_of_real_brokers_are_healthy(case: str, state: str) -> None:
    found = _dir(case, state)
    assert [finding for finding in verify_log_dir(found) if finding.is_problem] == []
    assert [p for partition in found.partitions for p in _problems(found, partition)] == []


@pytest.mark.parametrize(("case", "state"), HEALTHY)
def test_healthy_directories_need_no_repair_but_what_waits_for_removal(
    case: str, state: str
) -> None:
    actions = [
        (partition.name, action.name, action.reason)
        for partition in _dir(case, state).partitions
        if partition.is_kept
        for action in plan_repair(RealFiles(), partition).actions
        if action.reason != "deleted already"
    ]
    # A follower that truncated its log has stale bytes in its open indexes.
    stale = {"routes-0", "stops-0"} if (case, state) == ("epochs", "rest/broker2") else set()
    assert {name for name, _, _ in actions} == stale


@pytest.mark.parametrize("case", ["recovery-391", "recovery-430"])
def test_every_kind_of_damage_is_found(case: str) -> None:
    found = _dir(case, "before")
    for partition in found.partitions:
        topic = partition.directory.topic
        if not topic.startswith("r-"):
            continue
        codes = {finding.code for finding in _problems(found, partition)}
        if topic.endswith("garbage"):
            # What else garbage looks like is chance.
            codes -= {"index-corrupt", "timeindex-corrupt", "index-entry", "timeindex-entry"}
        name = topic.removeprefix("r-")
        lost = codes & LOSS
        # Where the last batch is a marker, the high watermark may have been below it.
        if name != "txn-tail-one-byte":
            assert (topic, bool(lost)) == (topic, name in LOSSES)
        assert (topic, codes - LOSS) == (topic, DAMAGE[name])


def _truth(case: str, state: str) -> dict[str, Any]:
    name = "recovery" if state == "before" else "clean-recovery"
    truth: dict[str, Any] = json.loads((GOLDEN / case / "truth" / f"{name}.json").read_text())
    return {topic: row for topic, row in truth.items() if "fatal_to_broker" not in row}


@cache
def _plans(case: str, state: str) -> dict[str, tuple[PartitionFolder, RepairPlan]]:
    """Return a plan for each topic, looking at what a broker's recovery looks at."""
    found = _dir(case, state)
    plans = {}
    for partition in found.partitions:
        recovery_point = found.state.offset(RECOVERY_POINTS, partition.topic_partition)
        options = RepairOptions(
            index_interval_bytes=400,
            # Without a clean stop and a checkpoint a broker starts at the beginning; after a
            # clean stop it does not look for damage at all.
            recovery_point=(recovery_point or 0) if state == "before" else 1 << 62,
            rebuild_all=True,
        )
        plan = plan_repair(RealFiles(), partition, options)
        plans[partition.directory.topic] = (partition, plan)
    return plans


@pytest.mark.parametrize("case", ["recovery-391", "recovery-430"])
def test_logs_are_cut_where_a_broker_cut_them(case: str) -> None:
    plans = _plans(case, "before")
    for topic, row in _truth(case, "before").items():
        _, plan = plans[topic]
        logs = {
            int(name[:20]): size
            for name, size in row["files_recovered"].items()
            if name.endswith(".log")
        }
        assert (topic, plan.end_offset) == (topic, int(row["log_end_offset"]))
        assert (topic, plan.log_bytes) == (topic, logs)


def _rebuilt_files(partition: PartitionFolder, plan: RepairPlan) -> dict[str, bytes]:
    """Return the files of a repaired copy, made on a disk in memory."""
    files = MemoryFiles()
    files.make_dir(plan.path)
    for path in Path(plan.path).iterdir():
        files.open(f"{plan.path}/{path.name}", write=True, create=True).append([path.read_bytes()])
    repair_into(files, plan, "/out")
    return {name: files.read_bytes(f"/out/{name}") for name in files.list_dir("/out")}


def _recovered_by_a_broker(case: str, state: str, partition: PartitionFolder) -> set[int]:
    """Return the base offsets of the segments that a broker reads and indexes again at start.

    After a crash those from its recovery point on; else those whose .index is missing.
    """
    point = _dir(case, state).state.offset(RECOVERY_POINTS, partition.topic_partition) or 0
    segments = partition.files.segments
    bases = {s.base_offset for s in segments if FileKind.INDEX not in s.sizes}
    if state == "before":
        first = max((s.base_offset for s in segments if s.base_offset <= point), default=0)
        bases |= {s.base_offset for s in segments if s.base_offset >= first}
    return bases


@pytest.mark.parametrize(
    ("case", "state", "after", "count"),
    [
        ("recovery-391", "before", "recovered", 432),
        ("recovery-391", "clean-before", "clean-recovered", 185),
        ("recovery-430", "before", "recovered", 108),
        ("recovery-430", "clean-before", "clean-recovered", 184),
    ],
)
def test_indexes_are_rebuilt_byte_for_byte(case: str, state: str, after: str, count: int) -> None:
    compared = 0
    truth = _truth(case, state)
    for topic, (partition, plan) in _plans(case, state).items():
        if topic not in truth:
            continue
        recovered = _recovered_by_a_broker(case, state, partition)
        for name, content in _rebuilt_files(partition, plan).items():
            path = case_dir(case) / after / partition.name / name
            if not name.endswith(INDEX_SUFFIXES) or int(name[:20]) not in recovered:
                continue
            # The running broker's own files are preallocated: zeros follow the last entry.
            kafka = path.read_bytes().rstrip(b"\0")
            assert (topic, name, content.rstrip(b"\0")) == (topic, name, kafka)
            compared += 1
    assert compared == count


def test_a_log_that_stops_every_broker_is_repaired() -> None:
    found = _dir("recovery-391", "before")
    (partition,) = (p for p in found.partitions if p.name == "r-offset-back-last-0")
    plan = plan_repair(RealFiles(), partition, RepairOptions(index_interval_bytes=400))
    assert (plan.end_offset, plan.log_bytes[118]) == (118, 0)
