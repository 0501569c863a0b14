"""The catalogue of reports, on logs that real Kafka wrote."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.reports import REPORTS, report_named
from engine.analysis.reports.report import HEADERS, KEYS, VALUES, NoSuchReport
from engine.analysis.splits import Selection, plan_splits
from engine.forecast.directory_history import history_of
from engine.forecast.dirtiness import dirtiness
from engine.forecast.retention_forecast import forecast_retention
from engine.host.real import RealFiles
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from tests.golden_cases import case_dir
from tests.unit.forecast.compacted_dirs import cleaned, golden_directory


def _rows(name: str, case: str) -> list[dict[str, Any]]:
    return _rows_of(name, case_dir(case) / "data")


def _rows_of(name: str, data: Path) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(data)], Selection())
    query = report_named(name).query
    return run_local_query(query, splits, control=False, max_rows=0).rows


def test_every_report_has_a_name_of_its_own_and_says_what_it_means() -> None:
    assert len(REPORTS) == len({report.name for report in REPORTS})
    for report in REPORTS:
        assert report.reads in (HEADERS, KEYS, VALUES)
        assert report.title and report.meaning


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_every_report_runs(report: Any) -> None:
    assert isinstance(_rows(report.name, "txn"), list)


def test_topics_are_counted() -> None:
    counts = {row["topic"]: row["records"] for row in _rows("topics", "plain")}
    assert {"bulk": 5, "clicks": 400, "orders": 780, "solo": 1} == counts


def test_sound_logs_have_no_gaps_overlaps_or_wrong_checksums() -> None:
    for name in ("gaps", "overlaps", "integrity", "sequence-gaps", "zombies"):
        assert [] == _rows(name, "plain")


def test_transactions_without_a_marker_are_open() -> None:
    opened = {(row["topic"], row["producerId"]) for row in _rows("open-transactions", "txn")}
    assert ("audit", 7) in opened
    assert [] == _rows("open-transactions", "plain")


def test_commits_are_counted_and_those_that_went_back() -> None:
    rows = {row["partition"]: row for row in _rows("commits", "txn") if row["topic"] == "ledger"}
    found = {
        partition: (row["commits"], row["went_back"], row["last_committed"])
        for partition, row in rows.items()
    }
    assert {0: (4, 1, 8), 1: (5, 2, 4)} == found


def test_the_last_state_of_each_group_counts() -> None:
    rows = {row["groupId"]: row for row in _rows("groups", "groups")}
    assert (True, None, 2) == _of(rows["g-rd-range"], "deleted", "generation", "generations")
    assert (3, "range", 1) == _of(rows["g-multi"], "generation", "protocol", "memberCount")


def test_the_last_state_of_each_transactional_id_counts() -> None:
    states = {row["transactionalId"]: row["state"] for row in _rows("transactional-ids", "txn")}
    assert "Ongoing" == states["till-6"]
    assert "CompleteAbort" == states["till-0"]


def test_transactions_are_counted_by_their_markers() -> None:
    rows = {(row["topic"], row["partition"]): row for row in _rows("transactions", "txn")}
    assert sum(row["transactions"] for row in rows.values()) == 34 + 22 + 13 + 9
    of_ledger = rows["ledger", 0]
    assert (34, 14) == _of(of_ledger, "transactions", "aborted")
    assert 0 < of_ledger["aborted_bytes"] < of_ledger["bytes"]


def test_checkpoints_are_compared_with_the_ends_of_logs(tmp_path: Path) -> None:
    data = _copy(tmp_path)
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nclicks 0 390\n")
    (row,) = [row for row in _rows_of("checkpoints", data) if row["topic"] == "clicks"]
    names = ("log_end_offset", "behind_high_watermark", "behind_recovery_point")
    assert (400, 0, 10) == _of(row, *names)


def test_the_dirty_ratio_is_that_of_the_cleaner(tmp_path: Path) -> None:
    data = _copy(tmp_path)
    bases = sorted(int(path.stem) for path in (data / "clicks-0").glob("*.log"))
    (data / "cleaner-offset-checkpoint").write_text(f"0\n1\nclicks 0 {bases[1]}\n")
    (row,) = _rows_of("dirty-ratio", data)
    log_dir = find_log_dir(RealFiles(), str(data))
    config = LogConfig(is_compacted=True, is_deleting=False)
    (log,) = dirtiness(RealFiles(), log_dir, config, lambda topic: topic == "clicks", 1 << 45)
    assert (bases[1], log.cleanable_bytes) == _of(row, "first_dirty_offset", "dirty_bytes")
    assert pytest.approx(log.dirty_ratio) == row["dirty_ratio"]


@pytest.mark.parametrize("limit_bytes", [0, 1, 4_000, 9_000, 16_384, 30_000, 1 << 20])
def test_retention_by_size_is_that_of_the_plan(limit_bytes: int) -> None:
    data = case_dir("retention") / "before"
    freed: Counter[str] = Counter()
    for row in _rows_of("retention-by-size", data):
        freed[row["topic"]] += row["bytes"] if row["bytes_after"] >= limit_bytes else 0
    plan = _planned(data, LogConfig(retention_ms=-1, retention_bytes=limit_bytes), 1 << 50)
    assert plan == dict(freed)
    assert limit_bytes == 1 << 20 or any(plan.values())


@pytest.mark.parametrize("case", ["stamps", "txn"])
def test_retention_by_time_is_that_of_the_plan(case: str) -> None:
    data = case_dir(case) / "data"
    rows = _rows_of("retention-by-time", data)
    days = sorted({row["last_day"] for row in rows if row["last_day"]})
    assert len(days) > 1
    for day in days:
        freed: Counter[str] = Counter()
        for row in rows:
            is_before = row["last_day"] is not None and row["last_day"] < day
            freed[row["topic"]] += row["bytes"] if is_before else 0
        now_ms = 1 << 50
        midnight_ms = round(day.timestamp() * 1000)
        assert dict(freed) == _planned(data, LogConfig(retention_ms=now_ms - midnight_ms), now_ms)


def _planned(data: Path, config: LogConfig, now_ms: int) -> dict[str, int]:
    """Return the bytes of each topic that `kctl retention plan` frees."""
    files, log_dir = RealFiles(), find_log_dir(RealFiles(), str(data))
    freed: Counter[str] = Counter()
    for folder in log_dir.partitions:
        history = history_of(files, folder, log_dir)
        assert history is not None
        forecast = forecast_retention(history, config, now_ms)
        freed[history.topic_partition.topic] += forecast.freed_bytes
    return dict(freed)


def test_compaction_savings_are_those_of_a_cleaning(tmp_path: Path) -> None:
    data = golden_directory(tmp_path)
    rows = {row["topic"]: row for row in _rows_of("compaction-savings", Path(data))}
    # Of transactions the cleaner drops what was aborted, and stops before the first open one.
    for log in cleaned(data, *(topic for topic in rows if not topic.startswith("kv-txn"))):
        topic = log.topic_partition.topic
        assert log.freed_records == rows[topic]["freed_records"], topic


def _copy(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    shutil.copytree(case_dir("plain") / "data", data)
    return data


def _of(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_an_unknown_report_names_the_nearest() -> None:
    with pytest.raises(NoSuchReport, match="most like it: tombstones"):
        report_named("tombstone")
