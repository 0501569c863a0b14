"""The same query gives the same columns and rows on the embedded engine and on Spark."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.columns import VIEWS
from engine.analysis.damage import ReadDamage
from engine.analysis.local_query import run_local_query
from engine.analysis.reports import REPORTS, report_named
from engine.analysis.reports.report import Report
from engine.analysis.reports.totals import RECORD_TOTALS
from engine.analysis.spark_query import run_query, run_report
from engine.analysis.splits import Selection, Split, plan_reading, plan_splits
from engine.analysis.statements import QueryFailed
from engine.analysis.value_decoding import (
    IDS_QUERY,
    ValueDecoding,
    fetch_schema_decoding,
    ids_in,
    with_keys_by_one,
)
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder, BatchSettings
from tests.golden_cases import case_dir, data_dir
from tests.unit.analysis.schema_logs import (
    SCHEMAS,
    SchemaTable,
    write_fields_log,
    write_keyed_log,
    write_log,
)
from tests.unit.log.logs import DIR, get, log_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

QUERIES = (
    "select * from records",
    "select * from batches",
    "select * from segments",
    "select topic, count(*), sum(value_size), min(timestamp), max(offset) from records group by 1",
    "select topic, partition, count(*) n from records group by topic, partition having n > 100",
    "select cast(key as string) k, length(value), upper(key) from records where topic = 'bulk'",
    "select date_trunc('hour', timestamp) h, count_if(is_tombstone) n from records group by 1",
    "select date_format(timestamp, 'yyyy-MM-dd HH:mm') m, count(distinct key) from records"
    " group by 1",
    "select lag(offset) over (partition by topic, partition order by offset) b from records",
    "select row_number() over (partition by topic order by offset, partition) n from records",
    "with s as (select topic, sum(size) b from batches group by 1) select * from s order by b desc",
    "select b.topic, s.bytes from batches b join segments s using (segment) where b.baseOffset = 0",
    "select r.offset, h.key, h.value from records r lateral view explode(headers) x as h",
    "select key from records where key = 'small' or key in ('k', 'valley-2')",
    "select offset % 7 as m, count(*) c from records group by offset % 7",
    "select case when value_size > 100 then 'large' else 'small' end s, count(*) from records"
    " group by 1",
    "select max_by(offset, timestampMs) from records where topic = 'clicks' and partition = 0",
    "select topic from records union select codec from batches",
    "select topic, sum(value_size) / count(*) a from records group by topic",
    "select timestamp > '2026-01-01T02:00:01+02:00' late, count(*) from records group by 1",
    "select count(*) n from batches natural join segments",
    "select crc32(value) c, value_hash from records where value is not null",
    "select coalesce(schema_id, -1) s, count(*) from records group by 1",
    "select substring(cast(key as string), 1, 3) p, count(*) from records where topic in ('bulk',"
    " 'solo') group by 1",
    "select key from records where cast(value as string) like '%a%' and value rlike '[0-9]+'",
    "select topic, percentile(value_size, 0.5) p from records group by topic",
    "select topic, percentile_approx(value_size, 0.5) p from records group by topic",
    "select cast(timestampMs / 3600000 as bigint) h, cast(timestamp as bigint) s, count(*) from"
    " records where timestampMs >= 0 group by 1, 2",
    "select dayofweek(timestamp) d, weekday(timestamp) w, extract(dow from timestamp) e, count(*)"
    " from records group by 1, 2, 3",
    "select date_format(timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\") t, unix_timestamp(timestamp) u"
    " from records where timestampMs >= 0",
    "select cast(timestampMs / 1000 as timestamp) t, timestamp_millis(timestampMs) m from records"
    " where timestampMs >= 0",
    "select substring(topic, 0, 2) s, get_json_object(cast(value as string), '$.a') a, count(*)"
    " from records group by 1, 2",
    "select topic, partition, max_by(value, offset) v, min_by(key, offset) k from records"
    " group by topic, partition",
    r"select topic like '%\_\_%' a, topic not like 'c\_%' b, count(*) from records group by 1, 2",
    "select date_add(timestamp, 1) a, add_months(timestamp, 1) b, count(*) from records group by 1,"
    " 2",
    "select timestampdiff(minute, timestamp '2025-12-31 23:59:30', timestamp) m, datediff(hour,"
    " timestamp, timestamp '2026-02-01 00:30:00') h, count(*) from records group by 1, 2",
    "select if(isControl, 1, 0) c, nvl(schema_id, 0) s, abs(-offset) o from records",
    "from records |> where offset > 390 |> select topic, offset",
    "select topic, collect_set(partition) from records where topic = 'solo' group by topic",
    "select offset from records order by offset limit 3 offset 2",
    "values (1, 'a'), (2, 'b')",
    "describe batches",
    "show tables",
    "show columns in segments",
)  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _rows(result: Any) -> tuple[list[str], list[str]]:
    rows = [[_plain(value) for value in row.values()] for row in result.rows]
    return list(result.columns), sorted(map(repr, rows))


def _in_turns() -> list[tuple[str, str]]:
    """Return each query with the case whose turn it is; with both in the slow tier.

    A query costs Spark seconds even where it reads little.
    """
    cases = ("plain", "txn")
    queries = [*QUERIES, *(report.whole_query for report in REPORTS)]
    if os.environ.get("KCTL_TEST_EVERY_CASE"):
        return [(query, case) for query in queries for case in cases]
    return [(query, cases[number % 2]) for number, query in enumerate(queries)]


@pytest.mark.parametrize(("query", "case"), _in_turns())
def test_both_engines_give_the_same_rows(spark: Any, query: str, case: str) -> None:
    assert _on_spark(spark, query, case) == _here(query, case)


@pytest.mark.parametrize("case", ["plain", "txn"])
@pytest.mark.parametrize(
    "report", [report for report in REPORTS if report.totals], ids=lambda report: report.name
)
def test_totals_of_tasks_give_the_rows_of_the_whole_query(
    spark: Any, report: Report, case: str
) -> None:
    on_spark = run_report(spark, report, _splits(case), control=False, max_rows=0)
    assert on_spark.rows
    assert _here(report.whole_query, case) == _rows(on_spark)
    assert RECORD_TOTALS not in {table.name for table in spark.catalog.listTables()}


#: Cases that have rows of each view, and those without any.
_CASES = ("txn", "groups", "kraft-430", "plain")


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("view", [view for view in VIEWS if view not in ("records", "batches")])
def test_both_engines_read_the_same_of_every_view(spark: Any, view: str, case: str) -> None:
    query = f"select * from {view}"
    assert _on_spark(spark, query, case) == _here(query, case)
    if any(column.name == "problem" for column in VIEWS[view]):
        query = f"select count(*) n, count(problem) bad from {view}"
        assert _on_spark(spark, query, case) == _here(query, case)


JOINS = (
    "select o.groupId, o.topic, o.partition, max(s.nextOffset) - max(o.committedOffset) lag"
    " from offsets o join segments s using (topic, partition) group by 1, 2, 3",
    "select state, count(*) n from transactions where kind = 'marker' and logPartition = 0"
    " group by state",
    "select c.topic, c.checkpointOffset, e.startOffset from checkpoints c"
    " join epochs e using (dir, topic, partition) where c.topic = 'ledger' and c.partition >= 0",
    "select i.kind, count(*) n from indexes i where i.topic in ('ledger', 'tickets') group by 1",
    "select get_json_object(fields, '$.name') name from metadata where type = 'TopicRecord'",
)


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("query", JOINS)
def test_both_engines_join_and_narrow_the_same(spark: Any, query: str, case: str) -> None:
    assert _on_spark(spark, query, case) == _here(query, case)


def _splits(case: str) -> list[Split]:
    return plan_splits(RealFiles(), [str(data_dir(case))], Selection(), 4000)


def _on_spark(spark: Any, query: str, case: str) -> tuple[list[str], list[str]]:
    return _rows(run_query(spark, query, _splits(case), control=False, max_rows=0))


def _here(query: str, case: str) -> tuple[list[str], list[str]]:
    return _rows(run_local_query(query, _splits(case), control=False, max_rows=0))


def test_both_engines_compare_replicas_the_same(spark: Any) -> None:
    folders = [str(case_dir("epochs") / "divergent" / f"broker{n}") for n in (1, 2, 3)]
    plan = plan_reading(RealFiles(), folders, Selection())
    splits = [*plan.splits, *plan.spares]
    for query in (
        "select * from replicas",
        "select count(*) n from records",
        report_named("divergence").query,
    ):
        on_spark = run_query(spark, query, splits, control=False, max_rows=0)
        here = run_local_query(query, splits, control=False, max_rows=0)
        assert _rows(on_spark) == _rows(here)


def test_both_engines_decode_values_the_same(spark: Any, tmp_path: Path) -> None:
    splits = plan_splits(RealFiles(), [str(write_log(tmp_path))], Selection())
    here = run_local_query(IDS_QUERY, splits, control=False, max_rows=0)
    assert _rows(run_query(spark, IDS_QUERY, splits, control=False, max_rows=0)) == _rows(here)
    ids = ids_in(here.rows)
    decoding = fetch_schema_decoding(SchemaTable(), *ids, shapes_keys=True)
    for query in (
        "select offset, decoded_key.id, decoded_key from records where decoded_key.id = 1",
        "select offset, decoded_key, decoded_value, decoding_problem from records",
        "select sum(decoded_value.id) s, max(decoded_value.user.age) a from records",
        "select r.offset, t from records r lateral view explode(r.decoded_value.tags) x as t",
    ):
        on_spark = run_query(spark, query, splits, control=False, max_rows=0, decoding=decoding)
        local = run_local_query(query, splits, control=False, max_rows=0, decoding=decoding)
        assert _rows(on_spark) == _rows(local), query


def test_both_engines_decode_keys_of_every_kind_the_same(spark: Any, tmp_path: Path) -> None:
    splits = plan_splits(RealFiles(), [str(write_keyed_log(tmp_path))], Selection())
    of_values, of_keys = ids_in(run_query(spark, IDS_QUERY, splits, control=False, max_rows=0).rows)
    by_ids = fetch_schema_decoding(SchemaTable(), of_values, of_keys, shapes_keys=True)
    by_file = with_keys_by_one(ValueDecoding("json"), SCHEMAS[2])
    for decoding in (by_ids, by_file, with_keys_by_one(by_ids, SCHEMAS[3])):
        for query in (
            "select offset, decoded_key, decoded_value, decoding_problem from records",
            "select decoded_key.id, count(*) n from records group by 1",
            "select offset from records where decoded_key.total > 100",
        ):
            on_spark = run_query(spark, query, splits, control=False, max_rows=0, decoding=decoding)
            local = run_local_query(query, splits, control=False, max_rows=0, decoding=decoding)
            assert _rows(on_spark) == _rows(local), query


@pytest.mark.parametrize(
    "condition",
    [
        "decoded_value.offset = 101 or decoded_value.offset = 103",
        "r.decoded_value.partition between 51 and 52 and offset > 1",
        "decoded_value.topic in ('x1', 'it''s', 'x3')",
        "decoded_value.timestampMs <=> 2",
    ],
)
def test_both_engines_know_fields_from_columns(spark: Any, condition: str, tmp_path: Path) -> None:
    decoding = write_fields_log(tmp_path)
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    query = f"select offset, topic, 'it''s' text from records r where {condition}"
    on_spark = run_query(spark, query, splits, control=False, max_rows=0, decoding=decoding)
    here = run_local_query(query, splits, control=False, max_rows=0, decoding=decoding)
    assert on_spark.rows
    assert _rows(on_spark) == _rows(here)


def test_both_engines_find_early_records_behind_late_ones(spark: Any, tmp_path: Path) -> None:
    # The last segment's first and largest times are too late, and so is all that its index has.
    files = log_of({0: _at(0, [2000, 2001]), 2: _at(2, [2002, 3001, 10, 3000])})
    for name in files.list_dir(DIR):
        path = tmp_path / "t-0" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(get(files, name))
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    for condition, offsets in (
        ("timestamp < timestamp '1970-01-01 00:00:01'", [4]),
        ("timestamp between '1970-01-01 00:00:02' and '1970-01-01 00:00:02.002'", [0, 1, 2]),
        ("timestampMs <= 2000", [0, 4]),
    ):
        query = f"select offset from records where {condition} order by offset"
        for run in (run_local_query, partial(run_query, spark)):
            result = run(query, splits, control=False, max_rows=0)
            assert offsets == [row["offset"] for row in result.rows], condition


def _at(offset: int, times: list[int]) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=offset, leader_epoch=0))
    for time_ms in times:
        builder.append(time_ms, b"k", b"v")
    return bytes(builder.build())


def test_both_engines_know_saved_views(spark: Any) -> None:
    saved = {
        "counts": "select topic as Topic, count(*), max(offset) last from records group by topic",
        "small": "select * from counts where `count(1)` < 10",
        "wrong": "select nosuch from records",
        "never": "from records insert overwrite directory '/tmp/never' select key",
    }
    splits = _splits("plain")
    for query in (
        "with records as (select 1 x) select * from small, records",
        "show columns in small",
        "show tables",
    ):
        on_spark = run_query(spark, query, splits, control=False, max_rows=0, saved=saved)
        here = run_local_query(query, splits, control=False, max_rows=0, saved=saved)
        assert _rows(on_spark) == _rows(here), query
    for view, reason in (("wrong", "no column nosuch"), ("never", "InsertIntoDir is no question")):
        with pytest.raises(QueryFailed, match=f"the view {view}: {reason}"):
            run_query(
                spark, f"select * from {view}", splits, control=False, max_rows=0, saved=saved
            )
    assert set(VIEWS) == {table.name for table in spark.catalog.listTables()}


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "select topic, count(*) from records group by topic",
        "select max(b.size) from records r join batches b on r.offset = b.baseOffset",
    ],
)
def test_damage_is_the_same(spark: Any, query: str, *, is_strict: bool) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir("corrupt") / "v2")], Selection(), 4000)
    local, on_spark = (ReadDamage(is_strict=is_strict) for _ in range(2))
    run_local_query(query, splits, control=False, max_rows=0, damage=local)
    run_query(spark, query, splits, control=False, max_rows=0, damage=on_spark)
    assert [] != local.problems(RealFiles())
    assert local.problems(RealFiles()) == on_spark.problems(RealFiles())


def test_a_strict_query_reads_what_spark_broke_off(spark: Any) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir("corrupt") / "v2")], Selection())
    damage, whole = ReadDamage(is_strict=True), ReadDamage()
    run_query(spark, "select * from records limit 1", splits, control=False, max_rows=0,
              damage=damage)  # fmt: skip
    run_local_query("select * from records", splits, control=False, max_rows=0, damage=whole)
    assert whole.problems(RealFiles()) == damage.problems(RealFiles())


def test_damage_of_a_report_with_totals_is_the_same(spark: Any) -> None:
    splits = plan_splits(RealFiles(), [str(case_dir("corrupt") / "v2")], Selection())
    local, on_spark = ReadDamage(), ReadDamage()
    report = report_named("keys")
    run_local_query(report.whole_query, splits, control=False, max_rows=0, damage=local)
    run_report(spark, report, splits, control=False, max_rows=0, damage=on_spark)
    assert [] != local.problems(RealFiles())
    assert local.problems(RealFiles()) == on_spark.problems(RealFiles())
