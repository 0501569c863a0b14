"""Exports of some records, anonymised, in every format."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from engine.analysis import partitioned_files
from engine.analysis.anonymise import WrongAnonymising, parse_anonymised_columns
from engine.analysis.columns import RECORDS, UnknownColumn
from engine.analysis.export_files import (
    FilesTooSmall,
    UnknownFileFormat,
    check_file_format,
    check_file_size,
)
from engine.analysis.export_task import ExportJob, ExportShape, TaskReport, run_export_task
from engine.analysis.local_query import run_local_query
from engine.analysis.parquet_export import ExportPlan, export_with, plan_to_append
from engine.analysis.partitioned_files import WrongPartitioning, check_partitioning
from engine.analysis.row_condition import splits_to_read, translate_condition
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.statements import QueryFailed, StatementRefused
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder, BatchSettings
from tests.golden_cases import case_dir

ALL = tuple(column.name for column in RECORDS)


def _splits() -> list[Split]:
    return plan_splits(RealFiles(), [str(case_dir("plain") / "data")], Selection())


def _export(
    out: Path, shape: ExportShape, columns: tuple[str, ...] = ALL, splits: list[Split] | None = None
) -> Path:
    plan = ExportPlan(splits or _splits(), str(out), columns, shape=shape)

    def run(job: ExportJob) -> list[TaskReport]:
        return [run_export_task(job, plan.splits, "part-00000")]

    export_with(run, RealHeldFiles(), plan, "job")
    return out


def _rows(out: Path, file_format: str) -> list[dict[str, Any]]:
    if file_format == "parquet":
        return list(pq.read_table(out).to_pylist())
    (path,) = out.glob(f"part-*.{file_format}*")
    if file_format == "orc":
        return list(orc.read_table(path).to_pylist())
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "where",
    [
        "offset >= 390 and topic = 'clicks'",
        "key is null",
        "cast(value as string) like '%a%' or size(headers) > 0",
        "timestamp > timestamp '2026-01-01 00:00:01'",
        "value rlike '[0-9]+' and partition in (0, 2)",
        "schema_id > 3",
    ],
)
def test_an_export_has_the_records_that_a_query_has(where: str, tmp_path: Path) -> None:
    out = _export(tmp_path / "out", ExportShape(translate_condition(where)), ("topic", "offset"))
    query = f"select topic, offset from records where {where}"
    expected = run_local_query(query, _splits(), control=False, max_rows=0).rows
    key = lambda row: (row["topic"], row["offset"])  # noqa: E731
    assert sorted(expected, key=key) == sorted(_rows(out, "parquet"), key=key)


def test_a_condition_narrows_what_is_read_to_its_topics() -> None:
    splits = splits_to_read(_splits(), translate_condition("topic = 'clicks' and offset > 300"))
    assert {"clicks"} == {split.topic for split in splits}
    # Missing segments would be looked for.
    assert [s for s in _splits() if s.topic == "clicks"] == splits


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("nonsense = 1", QueryFailed),
        ("offset >", QueryFailed),
        ("count(*) > 1", StatementRefused),
        ("offset = (select max(offset) from records)", StatementRefused),
        ("row_number() over (order by offset) = 1", StatementRefused),
        ("1) from records; drop table x --", StatementRefused),
        ("true) as kept from records union select (true", QueryFailed),
        ("", QueryFailed),
    ],
)
def test_what_is_no_condition_of_a_record_is_refused(where: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        translate_condition(where)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_every_format_has_every_record(file_format: str, tmp_path: Path) -> None:
    out = _export(tmp_path / "out", ExportShape(file_format=file_format))
    expected = _rows(_export(tmp_path / "plain", ExportShape()), "parquet")
    rows = _rows(out, file_format)
    assert len(expected) == len(rows)
    for row, wanted in zip(rows, expected, strict=True):
        if file_format == "json":
            value = row["value"]
            assert wanted["value"] == (None if value is None else base64.b64decode(value))
            assert wanted["timestamp"].isoformat() == row["timestamp"]
        else:
            assert [wanted[n] for n in ("key", "value", "headers", "timestamp")] == [
                row[n] for n in ("key", "value", "headers", "timestamp")
            ]
        assert wanted["offset"] == row["offset"]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_an_export_without_records_is_a_file(file_format: str, tmp_path: Path) -> None:
    shape = ExportShape(translate_condition("offset < 0"), file_format=file_format)
    assert [] == _rows(_export(tmp_path / "out", shape), file_format)


def test_hashes_are_the_same_for_the_same_and_reveal_no_values(tmp_path: Path) -> None:
    shape = ExportShape(
        anonymised=parse_anonymised_columns(
            ["key=hash", "value=mask", "headers=drop", "topic=hash"]
        )
    )
    rows = _rows(_export(tmp_path / "out", shape), "parquet")
    plain = _rows(_export(tmp_path / "plain", ExportShape()), "parquet")
    assert "headers" not in rows[0]
    for row, wanted in zip(rows, plain, strict=True):
        key = wanted["key"]
        hashed = None if key is None else hashlib.sha256(key).hexdigest().encode()
        assert hashed == row["key"]
        assert (None if wanted["value"] is None else b"***") == row["value"]
        assert None is row["value_hash"]
        assert hashlib.sha256(wanted["topic"].encode()).hexdigest() == row["topic"]
    manifest = json.loads((tmp_path / "out" / "_kctl_manifest.json").read_text())
    assert "hash" == manifest["anonymised"]["key"]
    assert "headers" not in manifest["columns"]


def test_a_condition_may_name_a_column_that_is_dropped(tmp_path: Path) -> None:
    shape = ExportShape(
        translate_condition("key is not null"), parse_anonymised_columns(["key=drop"])
    )
    rows = _rows(_export(tmp_path / "out", shape, ("offset", "key")), "parquet")
    assert rows
    assert all(["offset"] == list(row) for row in rows)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("key", WrongAnonymising),
        ("key=encrypt", WrongAnonymising),
        ("offset=hash", WrongAnonymising),
        ("nosuch=drop", UnknownColumn),
    ],
)
def test_what_cannot_be_anonymised_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_anonymised_columns([text])
    with pytest.raises(WrongAnonymising):
        parse_anonymised_columns(["key=hash", "key=mask"])


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UnknownFileFormat):
        check_file_format("csv")


def test_files_lie_in_folders_of_what_they_are_of(tmp_path: Path) -> None:
    by = ("topic", "partition", "date")
    out = _export(tmp_path / "out", ExportShape(partition_by=by), ("topic", "offset", "key"))
    expected = _rows(_export(tmp_path / "plain", ExportShape()), "parquet")
    manifest = json.loads((out / "_kctl_manifest.json").read_text())
    listed = {entry["name"] for entry in manifest["files"]}
    assert listed == {str(path.relative_to(out)) for path in out.glob("topic=*/*/*/*.parquet")}
    days = {row["timestamp"].date().isoformat() for row in expected}
    assert days == {name.split("/")[2].removeprefix("date=") for name in listed}
    rows = pq.read_table(out).to_pylist()
    assert ["key", "offset"] == list(rows[0])[:2]
    place = lambda row: (str(row["topic"]), int(row["partition"]), row["offset"])  # noqa: E731
    assert sorted(map(place, expected)) == sorted(map(place, rows))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_no_file_is_larger_than_it_may_be_and_no_record_is_lost(
    tmp_path: Path, file_format: str
) -> None:
    chance = Random(1)
    builder = BatchBuilder(BatchSettings(leader_epoch=0))
    for number in range(2_000):
        builder.append(number, b"%d" % number, chance.randbytes(1_000))
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "logs" / "t-0" / f"{0:020}.log").write_bytes(builder.build())
    splits = plan_splits(RealFiles(), [str(tmp_path / "logs")], Selection())
    largest = 400_000
    shape = ExportShape(file_format=file_format, file_max_bytes=largest)
    out = _export(tmp_path / "out", shape, ("offset", "value"), splits)
    paths = sorted(out.glob("part-*"))
    sizes = [path.stat().st_size for path in paths]
    assert max(sizes) <= largest
    # Sizes are known of whole row groups.
    assert sorted(sizes)[1] > largest / 2
    assert 2_000 == sum(_row_count(path, file_format) for path in paths)


def _row_count(path: Path, file_format: str) -> int:
    if file_format == "parquet":
        return int(pq.read_table(path).num_rows)
    if file_format == "orc":
        return int(orc.read_table(path).num_rows)
    with gzip.open(path, "rt") as lines:
        return sum(1 for _ in lines)


def test_files_that_have_room_for_little_but_their_ends_are_refused() -> None:
    assert 1 << 20 == check_file_size(1 << 20)
    with pytest.raises(FilesTooSmall, match="at least 1048576"):
        check_file_size((1 << 20) - 1)


def test_more_folders_than_open_files_lose_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioned_files, "EXPORT_FILES_OPEN_MAX", 1)
    splits = [*_splits(), *_splits()]  # so that each folder is come back to
    shape = ExportShape(partition_by=("topic", "partition"))
    out = _export(tmp_path / "out", shape, ("offset",), splits)
    assert 2 * 1186 == pq.read_table(out).num_rows
    assert list(out.glob("*/*/*.1.parquet"))


def test_a_second_run_adds_to_the_folders(tmp_path: Path) -> None:
    shape = ExportShape(partition_by=("topic",))
    out = _export(tmp_path / "out", shape, ("offset",))
    plan = plan_to_append(RealFiles(), ExportPlan(_splits(), str(out), ("offset",), shape=shape))
    export_with(lambda job: [], RealHeldFiles(), plan, "job")
    assert 1186 == pq.read_table(out).num_rows


@pytest.mark.parametrize(
    ("names", "anonymised", "reason"),
    [
        (["offset"], [], "expected some of"),
        (["topic", "topic"], [], "twice"),
        (["topic"], ["topic"], "would show topic"),
        (["date"], ["timestamp"], "would show date"),
    ],
)
def test_folders_that_cannot_be_are_refused(
    names: list[str], anonymised: list[str], reason: str
) -> None:
    with pytest.raises(WrongPartitioning, match=reason):
        check_partitioning(names, anonymised)
    with pytest.raises(WrongPartitioning, match="no column is left"):
        ExportShape(partition_by=("topic",)).written_columns(("topic",))
