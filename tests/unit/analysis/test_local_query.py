"""`spark-sql --engine local`: the views by DuckDB, asked in Spark's SQL."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import local_query, local_views
from engine.analysis.columns import RECORDS, VIEWS
from engine.analysis.local_query import run_local_query
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.statements import QueryFailed, QueryResult, StatementRefused
from engine.host.real import RealFiles
from tests.golden_cases import data_dir

ALL = [column.name for column in RECORDS]


def _splits(case: str = "plain") -> list[Split]:
    return plan_splits(RealFiles(), [str(data_dir(case))], Selection(), 4000)


def _result(query: str, case: str = "plain", max_rows: int = 0) -> QueryResult:
    return run_local_query(query, _splits(case), control=False, max_rows=max_rows)


def _ask(query: str, case: str = "plain") -> list[dict[str, Any]]:
    return _result(query, case).rows


def test_records_are_counted_by_topic() -> None:
    rows = _ask("select topic, count(*) n from records group by topic order by topic")
    expected = [("bulk", 5), ("clicks", 400), ("orders", 780), ("solo", 1)]
    assert expected == [(row["topic"], row["n"]) for row in rows]


def test_batches_and_segments_join() -> None:
    rows = _ask(
        """select s.topic, sum(b.size) as in_batches, max(s.bytes) as in_segment
           from batches b join segments s on b.segment = s.segment
           where s.topic = 'clicks' group by s.topic, s.segment"""
    )
    assert len(rows) > 1
    assert all(row["in_batches"] == row["in_segment"] for row in rows)


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_can_be_requested(view: str) -> None:
    case = {"groups": "groups", "metadata": "kraft-430"}.get(view, "txn")
    (first, *_) = _ask(f"select * from {view} limit 5", case=case)
    assert [column.name for column in VIEWS[view]] == list(first)


@pytest.mark.parametrize(
    "query", ["TABLE records", "FROM records", "select * from records", "from records |> select *"]
)
def test_every_form_of_all_columns_has_them_all(query: str) -> None:
    rows = _ask(query)
    assert 1186 == len(rows)
    assert ALL == list(rows[0])


def test_times_are_utc() -> None:
    (row,) = _ask("select min(timestamp) t from records where topic = 'bulk'")
    assert "2026-01-01T00:00:00+00:00" == row["t"].isoformat()


@pytest.mark.parametrize(
    "time",
    [
        "timestamp '2026-01-01 02:00:05+02:00'",
        "'2026-01-01T00:00:05Z'",
        "to_timestamp('2025-12-31T19:00:05-05:00')",
        "cast(get_json_object('{\"at\": \"2026-01-01T02:00:05+02:00\"}', '$.at') as timestamp)",
        "timestamp '2026-01-01 01:00:05 Europe/Berlin'",
        "timestamp_ntz '2026-01-01 00:00:05'",
    ],
)
def test_a_time_with_a_zone_is_that_time(time: str) -> None:
    (row,) = _ask(f"select count_if(timestamp < {time}) n, {time} > max(timestamp) m from records")
    assert {"n": 47, "m": False} == row
    assert [{"n": 47}] == _ask(f"select count(*) n from records where {time} > timestamp")


@pytest.mark.parametrize("end", ["where 1 = 0", "where offset > 5 and offset < 3", "limit 0"])
def test_a_query_without_rows_has_its_columns(end: str) -> None:
    result = _result(f"select * from records {end}")
    assert ([], ALL) == (result.rows, result.columns)


@pytest.mark.parametrize(
    "statement",
    ["-- all\nshow tables", "/* c */ show /* d */ tables; -- e", "explain cost select 1;"],
)
def test_comments_are_no_part_of_a_statement(statement: str) -> None:
    assert _ask(statement)
    assert ["1"] == _result("-- a\nselect 1 -- b\n; -- c").columns


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select count(*), max(offset), BASEOFFSET from records group by all",
         ["count(1)", "max(offset)", "BASEOFFSET"]),
        ("select offset + 1, r.key, key as k from records r", ["(offset + 1)", "key", "k"]),
        ("select upper(key) from records union all select codec from batches", ["upper(key)"]),
    ],
)  # fmt: skip
def test_result_columns_have_the_names_that_spark_gives(query: str, columns: list[str]) -> None:
    assert columns == _result(query, max_rows=1).columns


def test_bytes_are_text_where_text_is_wanted() -> None:
    (row,) = _ask(
        """select upper(key) u, cast(value as string) v, length(value) n, crc32(value) c,
                  value like '%o%' l, key = 'KEY' e, key in ('a', 'only') i
           from records where topic = "solo" """
    )
    assert ("ONLY", "one", 3, 2053932785, True, False, True) == tuple(row.values())


def test_bytes_that_are_no_text_show_where() -> None:
    texts = [row["k"] for row in _ask("select cast(key as string) k from records")]
    assert any(text is not None and "\ufffd" in text for text in texts)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select nonsense from records", "no column nonsense"),
        ("select r.offse from records r", "no column offse; most like it: offset"),
        ("selec 1", "Syntax error at or near '1'"),
        ("select 1 from nosuch", "no view nosuch; the views are records, "),
        ("select nope(value) from records", "Scalar Function with name nope does not exist!"),
        ("select * from read_csv('/etc/passwd')", "Cannot access file"),
        ("select sum(offset + 9223372036854775000) s from records", "a number of the result"),
        ("describe nosuch", "no view nosuch; the views are records, "),
        ("select * from recrods", "no view recrods; did you mean records?"),
        ("describe batch", "no view batch; did you mean batches?"),
        ("select * from default.records", "no view default.records; did you mean records?"),
        ("select * from (select key, key from records)", "a subquery has two columns of one name"),
        # It fails while rows are read.
        ("select count(*) from records where timestamp > 'x'", "invalid timestamp field format"),
    ],
)
def test_a_wrong_query_is_answered_in_a_line(query: str, reason: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        _ask(query)
    assert failed.value.reason.startswith(reason)
    assert "\n" not in failed.value.reason


@pytest.mark.parametrize(
    "query",
    [
        "insert into t select 1",
        "with a as (select 1) insert into t select * from a",
        "select 1; select 2",
        "drop view records",
        "show partitions records",
        "explain drop view records",
    ],
)
def test_what_is_no_question_is_refused(query: str) -> None:
    with pytest.raises(StatementRefused):
        _ask(query)


def test_the_views_describe_themselves() -> None:
    assert ALL == [row["col_name"] for row in _ask("describe records")]
    assert ALL == [row["col_name"] for row in _ask("SHOW COLUMNS IN records")]
    assert sorted(VIEWS) == [row["tableName"] for row in _ask("show tables")]
    (plan,) = _ask("explain select key from records where offset > 3")
    assert "offset > 3" in plan["plan"]


def test_rows_are_limited_when_asked() -> None:
    result = _result("select offset from records", max_rows=7)
    assert (7, True) == (len(result.rows), result.is_cut)
    result = _result("select offset from records order by offset desc limit 3", max_rows=7)
    assert ([399, 398, 397], False) == ([row["offset"] for row in result.rows], result.is_cut)
    result = _result("select offset from records limit 1000", max_rows=7)
    assert (7, True) == (len(result.rows), result.is_cut)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select count(*) from records", ["partition"]),
        ("select count(*) from records where topic = 'bulk'", ["topic"]),
        ("select KEY from records -- value", ["key"]),
        ("select max(offset) from (select * from records)", ["offset"]),
        ("with r as (select * from records) select r.key from r", ["key"]),
        ("select a.key from records a join records b using (topic, offset)",
         ["key", "topic", "offset"]),
        ("select key from records where offset = (select max(partition) from records)",
         ["key", "partition", "offset"]),
        ("select 1", None),
        ("select * except (value, key) from records",
         [name for name in ALL if name not in ("value", "key")]),
    ],
)  # fmt: skip
def test_only_the_columns_that_a_query_uses_are_read(
    query: str, names: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: dict[str, list[str]] = {}

    class Noted(local_views.LocalView):
        def __init__(self, view: str, columns: Any, *more: Any) -> None:
            super().__init__(view, columns, *more)
            read[view] = [column.name for column in columns]

    monkeypatch.setattr(local_views, "LocalView", Noted)
    _ask(query)
    assert names == read.get("records")


def test_a_view_that_is_used_twice_is_read_twice() -> None:
    query = "with a as (select offset from records where topic = 'clicks')"
    (row,) = _ask(f"{query} select count(*) n from a x join a y using (offset)")
    assert 400 <= row["n"]


def test_a_log_that_is_gone_fails_with_its_path() -> None:
    (split, *_) = _splits()
    with pytest.raises(QueryFailed, match=r"/gone\.log"):
        run_local_query(
            "select count(*) from records",
            [split._replace(path="/gone.log")],
            control=False,
            max_rows=0,
        )


def test_ctrl_c_ends_a_query_as_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(local_views.ViewReader, "batches_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _ask("select count(*) from records")


def test_what_memory_does_not_hold_goes_to_a_private_folder_that_goes_with_the_query(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "working").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "working")
    monkeypatch.setitem(local_query._SETTINGS, "memory_limit", "40MiB")
    wide = "create temp table wide as select repeat('x', 2000) || range as text from range(60000)"
    with local_query.open_spill_folder() as folder, closing(local_query.connect(folder)) as engine:
        engine.execute(wide)
        files = engine.execute("select path from duckdb_temporary_files()").fetchall()
        assert files and all(Path(path).is_relative_to(folder) for (path,) in files)
        assert 0o700 == stat.S_IMODE(os.stat(folder).st_mode)
        assert [] == os.listdir(tmp_path / "working")
    assert [] == os.listdir(tmp_path / "temporary")


def test_without_a_place_for_temporary_files_queries_have_memory_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    assert [{"n": 1186}] == _ask("select count(*) as n from records")
    monkeypatch.setitem(local_query._SETTINGS, "memory_limit", "20MiB")
    text = "concat(repeat('x', 900), a.offset, b.offset)"
    numbered = f"select row_number() over (order by {text}) n from records a, records b"
    with pytest.raises(QueryFailed) as caught:
        _ask(f"select max(n) from ({numbered} where b.topic = 'clicks')")
    assert "more memory than its 2048 MiB" in str(caught.value)
    assert [] == os.listdir(tmp_path)
