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
from engine.analysis.splits import Selection, plan_reading
from engine.forecast.directory_history import history_of
from engine.forecast.dirtiness import dirtiness
from engine.forecast.retention_forecast import forecast_retention
from engine.host.real import RealFiles
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from engine.records.builder import BatchBuilder, BatchSettings
from tests.golden_cases import case_dir
from tests.unit.forecast.compacted_dirs import cleaned, golden_directory
from tests.unit.log.logs import TIME_MS, batch, put_segment


def _rows(name: str, case: str) -> list[dict[str, Any]]:
    return _rows_of(name, case_dir(case) / "data")


def _rows_of(name: str, *data: Path) -> list[dict[str, Any]]:
    plan = plan_reading(RealFiles(), [str(path) for path in data], Selection())
    splits = [*plan.splits, *plan.spares]
    query = report_named(name).query
    return run_local_query(query, splits, control=False, max_rows=0).rows


def _write_log(data: Path, *batches: bytes, base: int = 0) -> None:
    """Write a segment of the partition t-0."""
    (data / "t-0").mkdir(parents=True, exist_ok=True)
    put_segment(RealFiles(), base, b"".join(batches), path=str(data / "t-0"))


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
    # Of nine commits four are of transactions that were aborted, such as the last one of ledger-1.
    assert {0: (2, 0, 8), 1: (3, 1, 3)} == found


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


def _of_producer(base_offset: int, count: int, sequence: int) -> bytes:
    return batch(base_offset, count, base_sequence=sequence, producer_id=5, producer_epoch=0)


def test_sequence_numbers_begin_again_behind_the_largest(tmp_path: Path) -> None:
    last = (1 << 31) - 1
    _write_log(tmp_path, _of_producer(0, 3, last - 1), _of_producer(3, 2, 1))
    assert [] == _rows_of("sequence-gaps", tmp_path)
    _write_log(tmp_path, _of_producer(0, 3, last - 1), _of_producer(3, 2, 2))
    (row,) = _rows_of("sequence-gaps", tmp_path)
    assert (3, 2, 1) == _of(row, "baseOffset", "baseSequence", "expected")


def test_records_that_compaction_removed_are_no_gap_of_sequence_numbers(tmp_path: Path) -> None:
    settings = BatchSettings(producer_id=5, producer_epoch=0, base_sequence=0, leader_epoch=0)
    builder = BatchBuilder(settings)
    for offset in (0, 4):
        builder.append(TIME_MS, b"key", b"value", offset=offset)
    _write_log(tmp_path, bytes(builder.build()), _of_producer(5, 1, 5))
    assert [] == _rows_of("sequence-gaps", tmp_path)


@pytest.mark.parametrize("name", ["sequence-gaps", "zombies", "late-batches"])
def test_what_a_damaged_header_says_is_no_verdict(name: str, tmp_path: Path) -> None:
    damaged = bytearray(_of_producer(1, 1, 1))
    damaged[35] ^= 0x40  # of the largest time
    damaged[51] ^= 0x40  # of the epoch
    damaged[53] ^= 0x40  # of the sequence
    good = [_of_producer(0, 1, 0), _of_producer(2, 1, 2), _of_producer(3, 1, 3)]
    _write_log(tmp_path, good[0], bytes(damaged), *good[1:])
    rows = _rows_of(name, tmp_path)
    if name == "sequence-gaps":
        assert [(2, 1)] == [_of(row, "baseOffset", "expected") for row in rows]
    else:
        assert [] == [row for row in rows if row.get("late_batches", 1)]


def test_topics_of_old_formats_are_counted_by_their_bytes() -> None:
    rows = {row["topic"]: row for row in _rows("topics", "formats")}
    names = ("records", "batches", "bytes", "bytes_per_record", "first_timestamp")
    assert (None, 9, 12356, None, None) == _of(rows["old-v0-gzip"], *names)
    assert (118, 87, 33204) == _of(rows["old-switch"], "records", "batches", "bytes")
    assert pytest.approx(14321 / 118) == rows["old-switch"]["bytes_per_record"]


def test_sound_logs_of_old_formats_have_no_gaps() -> None:
    assert [] == _rows("gaps", "formats")


def test_a_batch_within_another_overlaps_and_leaves_no_gap(tmp_path: Path) -> None:
    _write_log(tmp_path, batch(0, 10), batch(3, 2), batch(5, 5), batch(10), batch(12))
    rows = _rows_of("overlaps", tmp_path)
    assert [(3, 9), (5, 9)] == [_of(row, "baseOffset", "last_offset_before") for row in rows]
    rows = _rows_of("gaps", tmp_path)
    assert [(11, 11, 1)] == [_of(r, "first_missing", "last_missing", "missing") for r in rows]


def test_only_offsets_that_all_replicas_have_can_diverge(tmp_path: Path) -> None:
    one, other = tmp_path / "1", tmp_path / "2"
    _write_log(one, batch(0, 3), batch(3, 2))
    _write_log(one, batch(5, 2), batch(7), batch(8), base=5)
    _write_log(other, batch(5, 2), batch(8), base=5)
    for number, data in enumerate((one, other)):
        (data / "meta.properties").write_text(f"version=0\nbroker.id={number}\n")
    (row,) = _rows_of("divergence", one, other)
    assert (7, 1, 2) == _of(row, "baseOffset", "copies", "replicas")


def test_each_directory_has_all_that_is_in_it() -> None:
    brokers = [case_dir("epochs") / "divergent" / f"broker{number}" for number in (1, 2, 3)]
    together = _rows_of("directories", *brokers)
    assert 3 == len(together)
    alone = [row for broker in brokers for row in _rows_of("directories", broker)]
    assert sorted(map(repr, alone)) == sorted(map(repr, together))


@pytest.mark.parametrize("time_ms", [253_402_300_800_000, 1 << 60])
def test_a_time_after_all_years_keeps_what_follows(time_ms: int, tmp_path: Path) -> None:
    for number, at_ms in enumerate((TIME_MS, time_ms, TIME_MS)):
        _write_log(tmp_path, batch(number, at_ms=at_ms), base=number)
    rows = _rows_of("retention-by-time", tmp_path)
    assert [(True, 2), (False, 1)] == [(row["last_day"] is None, row["segments"]) for row in rows]


def test_logs_without_times_have_no_day_and_no_duration(tmp_path: Path) -> None:
    for number, at_ms in enumerate((-1, -1, TIME_MS)):
        _write_log(tmp_path, batch(number, at_ms=at_ms), base=number)
    days = [(row["last_day"], row["segments"]) for row in _rows_of("retention-by-time", tmp_path)]
    assert (None, 2) == days[0]
    _write_log(tmp_path, batch(0, at_ms=-1), batch(1, at_ms=(1 << 63) - 1))
    assert {None} == {row["longest_ms"] for row in _rows_of("rolls", tmp_path)}
