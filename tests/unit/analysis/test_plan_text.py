"""What the text of a plan says of a query."""

from __future__ import annotations

import pytest

from engine.analysis.plan_text import parse_plans, used_columns, writing_operator
from engine.analysis.view_column import ViewColumn

_VIEWS = {
    "records": tuple(ViewColumn(name, "int", True, "") for name in ("key", "topic", "offset")),
    "batches": tuple(ViewColumn(name, "int", True, "") for name in ("topic", "baseOffset")),
}
_RECORDS = "MapInArrow _refuse_to_read(id#2L)#4, [key#5, topic#7, offset#9L], false"
_GROUPED = "Aggregate [topic#7], [topic#7, count(1) AS n#57L]\n+- Project [topic#7]\n   +- "
_BATCHES = "MapInArrow _refuse_to_read(id#31L)#33, [topic#34, baseOffset#38L], false"


def _explained(analyzed: str, optimized: str) -> str:
    return (
        "== Parsed Logical Plan ==\n'Project [*]\n\n"
        f"== Analyzed Logical Plan ==\n{analyzed}\nProject [key#5]\n\n"
        f"== Optimized Logical Plan ==\n{optimized}\n\n== Physical Plan ==\nRange (0, 1)\n"
    )


@pytest.mark.parametrize(
    ("analyzed", "optimized", "used"),
    [
        # The columns of the result are used though no operator names them.
        ("key: binary, topic: string, offset: bigint", _RECORDS,
         {"records": {"key", "topic", "offset"}}),
        ("topic: string, n: bigint",
         _GROUPED + _RECORDS,
         {"records": {"topic"}}),
        ("count(1): bigint", f"Aggregate [count(1) AS count(1)#88L]\n+- Project\n   +- {_RECORDS}",
         {"records": set()}),
        ("n: bigint",
         f"Join LeftSemi, (offset#9L = baseOffset#38L)\n:- {_RECORDS}\n+- {_BATCHES}",
         {"records": {"offset"}, "batches": {"baseOffset"}}),
    ],
)  # fmt: skip
def test_columns_that_operators_name_are_used(
    analyzed: str, optimized: str, used: dict[str, set[str]]
) -> None:
    plan = parse_plans(_explained(analyzed, optimized))
    assert plan is not None
    assert used == used_columns(plan, _VIEWS)


def test_of_a_source_that_is_no_view_nothing_is_concluded() -> None:
    plan = parse_plans(_explained("a: int", "MapInArrow other(id#2L)#4, [a#5], false"))
    assert plan is not None
    assert used_columns(plan, _VIEWS) is None


def test_a_refused_query_has_no_optimized_plan() -> None:
    refused = "== Parsed Logical Plan ==\n'Project ['x]\n\n== Analyzed Logical Plan ==\nerror\n"
    assert parse_plans(refused) is None


@pytest.mark.parametrize(
    ("parsed", "operator"),
    [
        ("'Project ['a]\n+- 'UnresolvedRelation [records], [], false", None),
        (
            "CTE [x]\n:  +- 'SubqueryAlias x\n+- 'InsertIntoStatement 'records",
            "InsertIntoStatement",
        ),
        ("CTE [x]\n:  +- 'Project [\n\n AS a]\n+- 'InsertIntoStatement 'r", "InsertIntoStatement"),
        ("SetCommand None", "SetCommand"),
    ],
)
def test_an_operator_that_writes_is_seen(parsed: str, operator: str | None) -> None:
    text = f"== Parsed Logical Plan ==\n{parsed}\n\n== Analyzed Logical Plan ==\nCreateX\n"
    assert operator == writing_operator(text)
