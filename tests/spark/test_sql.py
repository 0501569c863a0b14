"""`spark-sql`: the views over log directories."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.columns import RECORDS, VIEWS, arrow_schema
from engine.analysis.plan_text import FIELDS_MAX, FIELDS_SETTING
from engine.analysis.pruning import ALL_RECORDS, Bounds, bounds_of
from engine.analysis.spark_query import SavedOnSpark, run_query
from engine.analysis.spark_views import find_used_by_text, find_used_views
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.statements import QueryFailed, StatementRefused, check_statement
from engine.host.real import RealFiles
from tests.golden_cases import data_dir

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def _ask(spark: Any, query: str, case: str = "plain", max_rows: int = 0) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(data_dir(case))], Selection(), 4000)
    return run_query(spark, query, splits, control=False, max_rows=max_rows).rows


def test_records_are_counted_by_topic(spark: Any) -> None:
    rows = _ask(spark, "select topic, count(*) n from records group by topic order by topic")
    expected = [("bulk", 5), ("clicks", 400), ("orders", 780), ("solo", 1)]
    assert expected == [(row["topic"], row["n"]) for row in rows]


def test_batches_and_segments_join(spark: Any) -> None:
    rows = _ask(
        spark,
        """select s.topic, sum(b.size) as in_batches, max(s.bytes) as in_segment
           from batches b join segments s on b.segment = s.segment
           where s.topic = 'clicks' group by s.topic, s.segment""",
    )
    assert len(rows) > 1
    assert all(row["in_batches"] == row["in_segment"] for row in rows)


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_can_be_requested(view: str, spark: Any) -> None:
    case = {"groups": "groups", "metadata": "kraft-430"}.get(view, "txn")
    rows = _ask(spark, f"select * from {view} limit 5", case=case)
    assert [c.name for c in VIEWS[view]] == list(rows[0])


def test_the_spark_types_are_those_of_the_table(spark: Any) -> None:
    _ask(spark, "select * from records limit 1")
    assert arrow_schema(RECORDS).names == spark.table("records").columns


def test_times_are_utc(spark: Any) -> None:
    rows = _ask(spark, "select min(timestamp) t from records where topic = 'bulk'")
    assert "2026-01-01T00:00:00+00:00" == rows[0]["t"].isoformat()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select nonsense from records", "no column nonsense"),
        ("select r.offse from records r", "no column r.offse; most like it: offset"),
        ("selec 1", "Syntax error at or near 'selec'. (line 1, pos 0)"),
        ("select 1 from nosuch", "no view nosuch; the views are records, "),
        ("select nope(value) from records", "Cannot resolve routine `nope`"),
        ("select 1/0", "Division by zero."),
    ],
)
def test_a_wrong_query_is_reported_in_a_line(
    spark: Any, query: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(QueryFailed) as failed:
        _ask(spark, query)
    assert failed.value.reason.startswith(reason)
    assert "\n" not in failed.value.reason
    assert "LogicalRDD" not in failed.value.reason
    assert "" == capfd.readouterr().err


def test_the_views_describe_themselves(spark: Any) -> None:
    names = [row["col_name"] for row in _ask(spark, "describe records")]
    assert [column.name for column in RECORDS] == names
    assert sorted(VIEWS) == [row["tableName"] for row in _ask(spark, "show tables")]
    assert [column.name for column in RECORDS] == [
        row["col_name"] for row in _ask(spark, "SHOW COLUMNS IN records")
    ]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("create table t as select 1", "CREATE is no question"),
        (" Drop view records", "DROP is no question"),
        ("/* select */ set a=b", "SET is no question"),
        ("select 1; select 2", "several statements"),
        (" -- nothing", "no query"),
        ("/* a /* b */ c */ drop view records", "DROP is no question"),
        ("", "no query"),
    ],
)
def test_what_is_no_question_is_refused(query: str, reason: str) -> None:
    with pytest.raises(StatementRefused, match=reason):
        check_statement(query)


@pytest.mark.parametrize(
    "query",
    [
        "select ';' -- a;b",
        'select ";", `;`',
        "(select 1)",
        "SELECT 1;\n",
        "with a as (select 1) select 1",
    ],
)
def test_a_question_is_none_of_that(query: str) -> None:
    assert check_statement(query) in ("select", "with")


def test_rows_are_cut_when_asked(spark: Any) -> None:
    assert 7 == len(_ask(spark, "select offset from records", max_rows=7))


ALL = [c.name for c in RECORDS]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select count(*) from records", ["partition"]),
        ("select key from records where 'value' = topic", ["key", "topic"]),
        ("select KEY from records -- value", ["key"]),
        ("select \"a -- b\" x, key from records where \"it's\" <> topic", ["key", "topic"]),
        ("select max(offset) from (select * from records)", ["offset"]),
        ("with r as (select * from records) select r.key from r", ["key"]),
        ("select a.key from records a join records b using (topic, offset)",
         ["key", "topic", "offset"]),
        ("select key from records where offset = (select max(partition) from records)",
         ["key", "partition", "offset"]),
        ("select key from records r"
         " where exists (select 1 from batches b where b.baseOffset = r.offset)",
         ["key", "offset"]),
        ("select `offset` as `value -- topic` from records", ["offset"]),
        ("select 1", None),
        ("select * from records", ALL),
        ("table records", ALL),
        ("from records", ALL),
        ("from records |> where offset > 3 |> select key", ["key", "offset"]),
        ("select r.* from records r", ALL),
        ("select struct(*) from records", ALL),
        ("select * except (value, key) from records",
         [name for name in ALL if name not in ("value", "key")]),
    ],
)  # fmt: skip
def test_only_the_columns_that_a_query_uses_are_read(
    spark: Any, query: str, names: list[str] | None
) -> None:
    found = find_used_views(spark, query).get("records")
    assert names == (None if found is None else [c.name for c in found.columns])


def test_the_filter_of_a_view_says_what_can_be_left_out(spark: Any) -> None:
    condition = """offset between 3 and 9 and topic in ('clicks', 'solo') and partition = 2
                   and timestamp > '2026-01-01T02:00:05.5+02:00' and length(value) > 3"""
    query = f"select * from (select key, offset o from records where {condition})"
    bounds = bounds_of(find_used_views(spark, query)["records"].conditions, "spark")
    assert {"clicks", "solo"} == bounds.topics
    assert bounds.partitions is not None
    assert [2] == [number for number in range(4) if bounds.partitions(number)]
    assert bounds.records == ALL_RECORDS._replace(
        first_offset=3, last_offset=9, first_ms=1767225605501
    )
    twice = "select offset from records where offset = 1 union all select offset from records"
    assert () == find_used_views(spark, twice)["records"].conditions


@pytest.mark.parametrize(
    "query",
    [
        "select key from records where topic = 'clicks' and partition in (0, 2) and offset >= 7",
        "select key from records where timestamp between '2026-01-01T02:00:05.5+02:00' and"
        " timestamp '2026-01-01 00:10:00' and timestampMs < 1767225605501",
        "with r as (select * from records where topic in ('a', 'b') or topic = 'c')"
        " select count(*) from r where offset between 3 and 9 and length(value) > 3",
        "select topic from records where partition in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        "select r.key from records r join batches b using (topic) where b.topic = 't'"
        " and r.offset > 4",
        "select * from few where partition = 1",
        "select key from records where topic = 'a' or offset = 3",
        "select offset from records where offset = 1 union all select offset from records",
    ],
)
def test_the_text_of_a_plan_says_what_its_objects_say(spark: Any, query: str) -> None:
    saved = {"few": "select topic, partition from records where topic = 'x' and offset < 5"}
    definitions = SavedOnSpark(spark, query, saved)
    used = find_used_views(spark, query, VIEWS, definitions.define)
    # As in a session of a Connect server.
    spark.conf.set(FIELDS_SETTING, FIELDS_MAX)
    by_text = find_used_by_text(spark, query, VIEWS, definitions.queries)
    spark.conf.unset(FIELDS_SETTING)
    definitions.remove()
    assert used.keys() == by_text.keys()
    for view, (columns, conditions) in used.items():
        assert columns == by_text[view].columns
        found = bounds_of(by_text[view].conditions, "spark")
        expected = bounds_of(conditions, "spark")
        assert expected[::2] == found[::2]
        assert [_has_partition(expected, n) for n in range(20)] == [
            _has_partition(found, n) for n in range(20)
        ]


def _has_partition(bounds: Bounds, number: int) -> bool:
    return bounds.partitions is None or bounds.partitions(number)


def test_a_text_with_a_parenthesis_narrows_nothing(spark: Any) -> None:
    query = "select key from records where topic = 'a' and cast(key as string) = 'x) AND (y'"
    find_used_views(spark, query)
    assert () == find_used_by_text(spark, query, VIEWS)["records"].conditions
    plain = query.replace("x) AND (y", "x and y")
    assert ("topic = 'a'",) == find_used_by_text(spark, plain, VIEWS)["records"].conditions
    assert spark.conf.get("spark.sql.optimizer.excludedRules", None) is None
    saved = {"v": query}
    assert () == find_used_by_text(spark, plain, VIEWS, saved)["records"].conditions


@pytest.mark.parametrize("query", ["TABLE records", "FROM records", "select * from records"])
def test_every_form_of_all_columns_has_them_all(spark: Any, query: str) -> None:
    rows = _ask(spark, query)
    assert 1186 == len(rows)
    assert ALL == list(rows[0])
    assert {5} == {row["key_size"] for row in rows if row["key"] is not None} or all(
        (row["key_size"] == -1) is (row["key"] is None) for row in rows
    )


def test_quotes_and_comments_hide_nothing_of_a_query(spark: Any) -> None:
    query = """select "--" a, 'x''y' b, `offset`, /* c /* d */ ' */ count(key) over () n, "it's" e
               from records where topic = "solo" -- 'and value"""
    (row,) = _ask(spark, query)
    assert ("--", "x'y", 0, "it's") == (row["a"], row["b"], row["offset"], row["e"])


def test_columns_that_are_not_read_change_no_result(spark: Any) -> None:
    # What is always true of a column is not asked of it: its stand-in has to agree.
    query = """select count(*) n from records
               where isControl = isControl and topic is not null and offset is not null"""
    assert [{"n": 1186}] == _ask(spark, query)
    natural = "select count(*) n from batches natural join segments"
    joined = (
        "select count(*) n from batches join segments using (topic, partition, segment, baseOffset)"
    )
    assert _ask(spark, natural) == _ask(spark, joined)


@pytest.mark.parametrize(
    "query",
    [
        "with a as (select 1) insert into t select * from a",
        "from records insert overwrite directory '/tmp/never' select key",
    ],
)
def test_a_statement_that_writes_is_refused_however_it_begins(spark: Any, query: str) -> None:
    with pytest.raises(StatementRefused):
        _ask(spark, query)
