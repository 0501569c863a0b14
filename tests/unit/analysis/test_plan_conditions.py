"""Conditions of a view's rows, read from the text of a plan."""

from __future__ import annotations

import pytest

from engine.analysis.plan_conditions import are_readable, conditions_above, has_views_alone

_COLUMNS = {"4": "topic", "5": "partition", "6": "offset", "7": "timestamp", "25": "timestampMs"}
_OF_VIEW = "MapInArrow _refuse_to_read(id#0L)#1, [key#2, topic#4], false"


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("(topic#4 = orders)", ("topic = 'orders'",)),
        ("(((topic#4 = a) AND partition#5 IN (1,2)) AND (offset#6L >= cast(100 as bigint)))",
         ("topic = 'a'", "partition IN (1, 2)", "offset >= 100")),
        ("(topic#4 IN (a,b) OR (topic#4 = c))", ("(topic IN ('a', 'b') OR topic = 'c')",)),
        ("topic#4 INSET a, b.c, d_-1", ("topic IN ('a', 'b.c', 'd_-1')",)),
        ("(isnotnull(timestamp#7) AND ((timestamp#7 >= cast(2026-01-01T00:00:00Z as timestamp)) AND"
         " (timestamp#7 <= 2026-01-01 01:00:00.5)))",
         ("timestamp >= TIMESTAMP '2026-01-01T00:00:00Z'",
          "timestamp <= TIMESTAMP '2026-01-01 01:00:00.5'")),
        ("((partition#5 <=> 3) AND (timestampMs#25L > cast(-5 as bigint)))",
         ("partition = 3", "timestampMs > -5")),
        ("((offset#6L = scalar-subquery#78 []) AND (topic#4 = a))", ("topic = 'a'",)),
        # Of another form, or of other columns.
        ("((topic#4 = a) OR (partition#5 = 1))", ("(topic = 'a' OR partition = 1)",)),
        ("((topic#4 = a) OR (key#2 = b))", ()),
        ("((topic#9 = a) AND (partition#4 = 3))", ()),
        ("(topic#4 > a)", ()),
        ("(topic#4 = a b)", ()),
        ("(cast(topic#4 as bigint) = 5)", ()),
        ("(timestamp#7 > 2026)", ()),
        ("(decoded_value#9.offset = 3)", ()),
        # Numbers that the type has not: without ANSI mode this one is 0.
        ("(partition#5 = cast(4294967296 as int))", ()),
        ("(offset#6L = cast(9223372036854775808 as bigint))", ()),
        ("(partition#5 = cast(-2147483648 as int))", ("partition = -2147483648",)),
        ("NOT (topic#4 = a)", ()),
        ("((topic#4 = a) = (offset#6L = 3))", ()),
        ("CASE WHEN (topic#4 = a) THEN true ELSE (offset#6L = 3) END", ()),
        # What a text says that joins conditions within one side of another operator.
        ("(cast(key#2 as string) = x AND y)", ()),
        ("((topic#4 = a) OR (cast(key#2 as string) = x AND y))", ()),
        ("(cast(key#2 as string) LIKE x AND y OR (topic#4 = a))", ()),
        ("(topic#4 = a", ()),
    ],
)  # fmt: skip
def test_conditions_of_a_known_form_are_read(condition: str, read: tuple[str, ...]) -> None:
    lines = ["Project [key#2]", f"+- Filter {condition}", f"   +- {_OF_VIEW}"]
    assert read == conditions_above(lines, 2, _COLUMNS)


def test_only_the_filter_right_above_counts() -> None:
    between = ["Filter (topic#4 = a)", "+- Limit 3", f"   +- {_OF_VIEW}"]
    assert () == conditions_above(between, 2, _COLUMNS)
    of_subquery = ["+- Filter (topic#4 = a)", f"   :  +- {_OF_VIEW}", "   +- Range (0, 1)"]
    assert () == conditions_above(of_subquery, 1, _COLUMNS)
    assert () == conditions_above([_OF_VIEW], 0, _COLUMNS)
    deeper = [":- Project [key#2]", ":  +- Filter (topic#4 = a)", f":     +- {_OF_VIEW}"]
    assert ("topic = 'a'",) == conditions_above(deeper, 2, _COLUMNS)


@pytest.mark.parametrize(
    ("query", "readable"),
    [
        ("select count(*) from records where topic = 'a' -- (so)", True),
        ("select 1 where key = 'x) AND (topic#4 = y'", False),
        ('select 1 where key = "("', False),
        (r"select 1 where key = '\u0028'", False),
        ("select 1 as `a)`", False),
        ("select 'a\nb'", False),
        # In a list of many it would end the list.
        ("select 1 where key = 'a AND b'", False),
        ("select 1 where key in ('AND b', 'OR')", False),
        ("select 1 where key = 'brand' and topic = 'ORDERS'", True),
    ],
)
def test_texts_that_could_be_parts_of_a_condition_are_seen(query: str, readable: bool) -> None:
    assert readable is are_readable(["select 1", query])


def test_a_view_of_somebody_else_is_seen() -> None:
    plan = ["key: binary", "+- SubqueryAlias v", "   +- View (`records`, [key#2])"]
    assert has_views_alone(plan, ["records"])
    assert not has_views_alone([*plan, ":     +- View (`spark_catalog`.`x`, [a#1])"], ["records"])
