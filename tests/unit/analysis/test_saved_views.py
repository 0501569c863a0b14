"""Views that users save: their text, and queries that use them on the embedded engine."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.saved_views import (
    CreateView,
    DropView,
    NoSavedView,
    ViewExists,
    WrongViewName,
    WrongViewText,
    apply_change,
    apply_change_to_text,
    create_view_statements,
    parse_view_change,
    parse_views,
    views_for,
)
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.statements import QueryFailed
from engine.host.real import RealFiles
from tests.golden_cases import data_dir

SAVED = {
    "counts": "select topic as Topic, count(*), max(OFFSET) from records group by topic",
    "small": "select * from counts where `count(1)` < 10 -- few",
    "keys": "select upper(key) from records union all select codec from batches",
    "ours": "with s as (select topic from records) select distinct topic from s",
    "wrong": "select nosuch from records",
    "lost": "select * from nothing",
    "ring": "select * from chain",
    "chain": "select * from ring",
}


def _ask(query: str) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(data_dir("plain"))], Selection(), 4000)
    return run_local_query(query, splits, control=False, max_rows=0, saved=SAVED).rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "select * from small order by topic",
            [
                {"Topic": "bulk", "count(1)": 5, "max(OFFSET)": 4},
                {"Topic": "solo", "count(1)": 1, "max(OFFSET)": 0},
            ],
        ),
        (
            "select s.topic, n from SMALL s join (select topic, count(*) n from batches group by 1)"
            " using (topic) order by n",
            [{"topic": "solo", "n": 1}, {"topic": "bulk", "n": 3}],
        ),
        ("select small.Topic from small where small.`max(OFFSET)` = 4", [{"Topic": "bulk"}]),
        ("select count(distinct `upper(key)`) > 9 many from keys", [{"many": True}]),
        ("select count(*) n from ours", [{"n": 4}]),
        ("show columns in small", [{"col_name": n} for n in ("Topic", "count(1)", "max(OFFSET)")]),
    ],
)
def test_a_saved_view_is_one_of_the_views(query: str, rows: list[dict[str, Any]]) -> None:
    assert rows == _ask(query)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("with small as (select 1 x) select count(*) n from small", 1),
        ("with small as (select * from small) select count(*) n from small", 2),
        ("select count(*) n from small where exists (with small as (select 1) select 1)", 2),
        # A view means the logs even where the query gives their view's name to something else.
        ("with records as (select 1 x) select count(*) n from small, records", 2),
        ("with records as (select 1 x) select count(records.x) n from records", 1),
    ],
)
def test_a_with_goes_before_a_saved_view(query: str, count: int) -> None:
    assert [{"n": count}] == _ask(query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select * from wrong", "the view wrong: no column nosuch"),
        ("describe wrong", "the view wrong: no column nosuch"),
        ("select * from lost", "the view lost: no view nothing; "),
        ("select * from ring", "the view ring uses itself: ring → chain → ring"),
        ("select nosuch from small", "no column nosuch"),
        ("select coutn from small", "no column coutn; most like it: count, count(1)"),
        ("select * from smal", "no view smal; did you mean small?"),
        ("describe coutns", "no view coutns; did you mean counts?"),
        # What the query around has is none of the view's.
        ("with nothing as (select 1) select * from lost", "the view lost: no view nothing; "),
        ("select topic from nosuch", "no view nosuch; "),
    ],
)
def test_the_view_that_is_wrong_is_named(query: str, reason: str) -> None:
    with pytest.raises(QueryFailed) as failed:
        _ask(query)
    assert failed.value.reason.startswith(reason)


def test_a_saved_view_describes_itself() -> None:
    rows = [(row["col_name"], row["data_type"]) for row in _ask("describe small")]
    assert [("Topic", "string"), ("count(1)", "bigint"), ("max(OFFSET)", "bigint")] == rows
    listed = {row["tableName"]: row["isTemporary"] for row in _ask("show tables")}
    assert (True, False) == (listed["records"], listed["small"])


def test_the_columns_of_a_query_have_the_types_of_spark() -> None:
    query = """describe query select key, headers, timestamp, value_size / 2 h, array(offset) a,
               is_tombstone b, current_date() d, cast(offset as tinyint) t from records"""
    assert [
        "binary", "array<struct<key:string,value:binary>>", "timestamp", "double", "array<bigint>",
        "boolean", "date", "tinyint",
    ] == [row["data_type"] for row in _ask(query)]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("create view V as select 1;", CreateView("v", "select 1")),
        ("-- why\nCREATE OR REPLACE VIEW `v` AS\n(select 1)", CreateView("v", "(select 1)", True)),
        ("drop view V", DropView("v")),
        ("drop view if exists v ;", DropView("v", True)),
        ("create table t as select 1", None),
        ("create view v", None),
        ("select 'create view v as select 1'", None),
    ],
)
def test_statements_that_change_views(statement: str, change: object) -> None:
    assert change == parse_view_change(statement)


def test_what_views_are_kept_as_is_read_again() -> None:
    saved = {**SAVED, "odd": "select ';' x, `a;b` /* ; */ from records -- ;"}
    assert saved == parse_views(create_view_statements(saved))
    assert {"a": "select 2"} == parse_views("create view a as select 1; create view a as select 2")
    assert {} == parse_views("-- none yet\n")


@pytest.mark.parametrize("text", ["select 1;", "create view a as select 1; drop view a"])
def test_a_text_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(WrongViewText, match="expected `create view NAME as …;`, not"):
        parse_views(text)


@pytest.mark.parametrize("name", ["records", "Batches", "größe", "1st"])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(WrongViewName):
        parse_view_change(f"create view {name} as select 1")


def test_nothing_is_replaced_or_removed_by_mistake() -> None:
    saved = {"a": "select 1"}
    with pytest.raises(ViewExists):
        apply_change(saved, CreateView("a", "select 2"))
    assert {"a": "select 2"} == apply_change(saved, CreateView("a", "select 2", replaces=True))
    assert {} == apply_change(saved, DropView("a"))
    assert saved == apply_change(saved, DropView("b", if_exists=True))
    with pytest.raises(NoSavedView, match="no saved view b; saved are: a"):
        apply_change(saved, DropView("b"))


def test_views_come_after_those_that_they_use() -> None:
    assert ["counts", "small"] == views_for("select 1 from small", SAVED)
    assert ["chain", "ring"] == views_for("select 1 from ring", SAVED)
    assert [] == views_for("select smaller from records", SAVED)


BY_HAND = """/* The case of May. */

-- how many
create view a as select 1; -- one

-- second
create view b as select 2"""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (CreateView("a", "select 3", True), BY_HAND.replace("a as select 1;", "a as\nselect 3\n;")),
        (CreateView("c", "select 3"), BY_HAND + "\n;\n\ncreate view c as\nselect 3\n;"),
        (DropView("a"), BY_HAND.replace("\n-- how many\ncreate view a as select 1;", "")),
        (DropView("b"), BY_HAND.partition("\n\n-- second")[0]),
    ],
)
def test_a_change_leaves_what_was_written_by_hand(change: CreateView | DropView, text: str) -> None:
    after = apply_change_to_text(BY_HAND, change)
    assert text + "\n" == after
    assert apply_change({"a": "select 1", "b": "select 2"}, change) == parse_views(after)


def test_the_first_view_is_all_of_the_text_and_the_last_leaves_none() -> None:
    text = apply_change_to_text("", CreateView("a", "select 1 -- x"))
    assert "create view a as\nselect 1 -- x\n;\n" == text
    assert "" == apply_change_to_text(text, DropView("a"))
    twice = "create view a as select 1; create view a as select 2;"
    assert {"a": "select 3"} == parse_views(
        apply_change_to_text(twice, CreateView("a", "select 3", True))
    )
    assert "" == apply_change_to_text(twice, DropView("a"))
