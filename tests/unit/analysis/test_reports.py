"""The catalogue of reports, on logs that real Kafka wrote."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.reports import REPORTS, report_named
from engine.analysis.reports.report import HEADERS, KEYS, VALUES, NoSuchReport
from engine.analysis.splits import Selection, plan_reading
from engine.forecast.directory_history import read_history
from engine.forecast.dirtiness import read_dirtiness
from engine.forecast.retention_forecast import forecast_retention
from engine.host.real import RealFiles
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType
from tests.golden_cases import case_dir
from tests.unit.forecast.compacted_dirs import cleaned, golden_directory
from tests.unit.log.logs import TIME_MS, batch, marker_of, put_segment


def _rows(name: str, case: str) -> list[dict[str, Any]]:
    return _rows_of(name, case_dir(case) / "data")


def _rows_of(name: str, *data: Path) -> list[dict[str, Any]]:
    plan = plan_reading(RealFiles(), [str(path) for path in data], Selection())
    splits = [*plan.splits, *plan.spares]
    query = report_named(name).whole_query
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
    (log,) = read_dirtiness(RealFiles(), log_dir, config, lambda topic: topic == "clicks", 1 << 45)
    assert (bases[1], log.cleanable_bytes) == _of(row, "first_dirty_offset", "dirty_bytes")
    assert pytest.approx(log.dirty_ratio) == row["dirty_ratio"]


@pytest.mark.parametrize("limit_bytes", [0, 1, 4_000, 9_000, 16_384, 30_000, 1 << 20])
def test_retention_by_size_is_that_of_the_plan(limit_bytes: int) -> None:
    data = case_dir("retention") / "before"
    freed: Counter[str] = Counter()
    for row in _rows_of("retention-by-size", data):
        freed[row["topic"]] += row["bytes"] if row["bytes_after"] >= limit_bytes else 0
    plan = _remaining_changes(
        data, LogConfig(retention_ms=-1, retention_bytes=limit_bytes), 1 << 50
    )
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
        assert dict(freed) == _remaining_changes(
            data, LogConfig(retention_ms=now_ms - midnight_ms), now_ms
        )


def _remaining_changes(data: Path, config: LogConfig, now_ms: int) -> dict[str, int]:
    """Return the bytes of each topic that `kctl retention plan` frees."""
    files, log_dir = RealFiles(), find_log_dir(RealFiles(), str(data))
    freed: Counter[str] = Counter()
    for folder in log_dir.partitions:
        history = read_history(files, folder, log_dir)
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
    few = NoSuchReport("days", ["days1", "days2", "days3", "days4", "hours"])
    assert "no report 'days'; most like it: days4, days3, days2" == str(few)


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


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of one log, whose batches have one to three records."""
    data = tmp_path_factory.mktemp("known")
    builder = BatchBuilder(BatchSettings(base_offset=3, leader_epoch=0))
    for key, value in ((b"key", b"x" * 100), (None, b""), (b"key", None), (b"", b"x" * 100)):
        builder.append(TIME_MS + 3, key, value, [("h", b"1")])
    transaction = [
        batch(0, base_sequence=0, producer_id=0, producer_epoch=0),
        batch(1, base_sequence=0, **_TRANSACTION),
        batch(2, base_sequence=1, **_TRANSACTION),
        bytes(builder.build()),
        marker_of(7, 9, ControlType.COMMIT),
        batch(10, 3, base_sequence=2, **_TRANSACTION),
    ]
    _write_log(data, *transaction)
    return data


_TRANSACTION: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
_OF_KNOWN: dict[str, list[dict[str, Any]]] = {
    "open-transactions": [{"producerId": 7, "first_open_offset": 10, "last_offset": 12}],
    "gaps": [{"first_missing": 7, "last_missing": 8}],
    "batch-health": [
        {"batches": 5, "records_per_batch": 2.0, "single_record_batches": 3,
         "not_idempotent_batches": 1},
    ],
    "transactions": [{"transactions": 1, "aborted": 0, "p50_ms": 8, "longest_ms": 8}],
    "sizes": [{"records": 9, "p50": 10.0, "p95": 100.0, "greatest": 100}],
    "keys": [
        {"key": b"k0", "records": 4, "bytes": 48},
        {"key": b"key", "records": 2, "bytes": 106},
        {"key": b"", "records": 1, "bytes": 100},
        {"key": b"k1", "records": 1, "bytes": 12},
        {"key": b"k2", "records": 1, "bytes": 12},
    ],
    "key-skew": [{"keys": 5, "records": 9, "most_records": 4, "largest_share": 4 / 9}],
    "tombstones": [{"records": 10, "tombstones": 1, "without_key": 1, "empty_values": 1}],
    "duplicates": [{"repeated_records": 3, "keys": 1, "first_offset": 1, "last_offset": 10}],
    "hours": [{"records": 10, "bytes": 48 + 106 + 100 + 24}],
    "topics": [{"partitions": 1, "records": 11, "batches": 6}],
    "producers": [
        {"producerId": -1, "first_offset": 3, "last_offset": 6, "records": 4},
        {"producerId": 0, "first_offset": 0, "last_offset": 0, "records": 1},
        {"producerId": 7, "first_offset": 1, "last_offset": 12, "records": 6},
    ],
    "headers": [{"header": "h", "records": 4}],
    "epochs": [{"leaderEpoch": 0, "first_offset": 0, "last_offset": 12, "batches": 6}],
    "codecs": [{"codec": "none", "magic": 2, "batches": 6, "records": 11}],
    "segments": [{"segments": 1, "first_offset": 0, "log_end_offset": 13}],
}  # fmt: skip


@pytest.mark.parametrize("name", _OF_KNOWN)
def test_reports_of_a_known_log(name: str, known: Path) -> None:
    rows = _rows_of(name, known)
    expected = _OF_KNOWN[name]
    if name == "keys":
        assert [row["bytes"] for row in rows] == sorted((r["bytes"] for r in rows), reverse=True)
        rows.sort(key=lambda row: (-row["records"], row["key"] != b"key", row["key"]))
    assert expected == [{column: row[column] for column in expected[0]} for row in rows]


def test_a_producer_may_begin_again_at_sequence_0(tmp_path: Path) -> None:
    _write_log(tmp_path, _of_producer(0, 2, 0), _of_producer(2, 1, 0), _of_producer(3, 1, 2))
    (row,) = _rows_of("sequence-gaps", tmp_path)
    assert (3, 2, 1) == _of(row, "baseOffset", "baseSequence", "expected")


def test_topics_count_partitions_once() -> None:
    partitions = {row["topic"]: row["partitions"] for row in _rows("topics", "plain")}
    assert {"bulk": 1, "clicks": 1, "orders": 3, "solo": 1} == partitions


def test_single_messages_of_old_formats_show_where_they_begin(tmp_path: Path) -> None:
    shutil.copytree(case_dir("formats") / "data", tmp_path / "data")
    path = tmp_path / "data" / "old-v1-none-0" / f"{0:020}.log"
    content = path.read_bytes()
    first_bytes = 12 + int.from_bytes(content[8:12], "big")
    second_bytes = 12 + int.from_bytes(content[first_bytes + 8 : first_bytes + 12], "big")
    path.write_bytes(content[:first_bytes] + content[first_bytes + second_bytes :])
    (row,) = _rows_of("gaps", tmp_path / "data")
    assert ("old-v1-none", 1, 1) == _of(row, "topic", "first_missing", "missing")


@pytest.mark.parametrize(
    ("batches", "contents", "epochs"),
    [
        ([batch(0), batch(1, at_ms=7)], 2, 1),
        ([batch(0), batch(1, epoch=3)], 1, 2),
        # One that is longer shows nothing of the others.
        ([batch(0), batch(1), batch(2)], 0, 0),
    ],
)
def test_replicas_of_one_end_differ_by_content_or_by_epoch(
    batches: list[bytes], contents: int, epochs: int, tmp_path: Path
) -> None:
    logs = [[batch(0), batch(1)], batches]
    for number, of_broker in enumerate(logs):
        _write_log(tmp_path / str(number), *of_broker)
        text = f"version=0\nbroker.id={number}\n"
        (tmp_path / str(number) / "meta.properties").write_text(text)
    rows = _rows_of("divergence", tmp_path / "0", tmp_path / "1")
    expected = [(1, contents, epochs)] if contents else []
    assert expected == [_of(row, "baseOffset", "contents", "epochs") for row in rows]


def test_the_same_offset_committed_again_is_no_way_back() -> None:
    rows = [row for row in _rows("commits", "groups") if row["groupId"] == "g-coop"]
    (row,) = [row for row in rows if (row["topic"], row["partition"]) == ("alerts", 0)]
    assert (2, 0, 10) == _of(row, "commits", "went_back", "last_committed")


def test_bytes_are_shared_out_by_days_and_partitions() -> None:
    (row,) = [row for row in _rows("imbalance", "plain") if row["topic"] == "orders"]
    assert (3, 97_886, 34_073) == _of(row, "partitions", "bytes", "most_bytes")
    assert pytest.approx(34_073 * 3 / 97_886) == row["most_to_mean"]
    (row,) = [row for row in _rows("days", "plain") if row["topic"] == "orders"]
    assert (780, 97_886) == _of(row, "records", "bytes")


def test_logs_without_a_checkpoint_are_listed(tmp_path: Path) -> None:
    data = _copy(tmp_path)
    for path in data.glob("*-checkpoint"):
        path.unlink()
    rows = _rows_of("checkpoints", data)
    assert {(None, None)} == {_of(row, "high_watermark", "behind_recovery_point") for row in rows}
    assert 7 == len(rows)


def test_percentiles_of_sizes_are_those_of_all_values(tmp_path: Path) -> None:
    chance = random.Random(7)
    for count in (1, 2, 3, 40, 101):
        data = tmp_path / str(count)
        builder = BatchBuilder(BatchSettings())
        for number in range(count):
            value = None if number % 9 == 8 else b"v" * chance.randrange(50)
            builder.append(TIME_MS + number, b"k", value)
        _write_log(data, bytes(builder.build()))
        (row,) = _rows_of("sizes", data)
        splits = plan_reading(RealFiles(), [str(data)], Selection()).splits
        query = (
            "select percentile(value_size, 0.5) p50, percentile(value_size, 0.95) p95,"
            " percentile(value_size, 0.99) p99 from records where value_size >= 0"
        )
        (expected,) = run_local_query(query, splits, control=False, max_rows=0).rows
        for name, value in expected.items():
            assert pytest.approx(value) == row[name], (count, name)


def _with_values(*values: bytes | None) -> bytes:
    builder = BatchBuilder(BatchSettings())
    for number, value in enumerate(values):
        builder.append(TIME_MS + number, b"k", value)
    return bytes(builder.build())


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((b"\0\0\0\0\x07{}", b"\0\0\0\0\x07{}", b"\0\0\0\0\x08", None, b"text"), [(7, 2), (8, 1)]),
        # One of two begins as if it had an id.
        ((b"\0\0\0\0\x07{}", b"text"), []),
        ((bytes(8), bytes(8)), []),
        ((b"\0\xff\xff\xff\xff",), []),
        ((None,), []),
    ],
)
def test_schema_ids_are_those_of_topics_whose_values_have_them(
    values: tuple[bytes | None, ...], found: list[tuple[int, int]], tmp_path: Path
) -> None:
    _write_log(tmp_path, _with_values(*values))
    rows = _rows_of("schemas", tmp_path)
    assert found == [(row["schema_id"], row["records"]) for row in rows]
