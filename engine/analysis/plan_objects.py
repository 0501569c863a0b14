"""Conditions in Spark's optimized plan as SQL, read from its Java objects.

Spark writes `r.decoded_value.offset` for a field of a column and `r.offset` for a column of a view
with alias `r`. Therefore a column is written here without its alias, and a condition with anything
other than columns and constants is left out: it does not reduce what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_OPERATORS = {
    "EqualTo": "=", "EqualNullSafe": "=", "LessThan": "<", "LessThanOrEqual": "<=",
    "GreaterThan": ">", "GreaterThanOrEqual": ">=", "Or": "OR",
}  # fmt: skip


def plain_conditions(condition: JavaObject) -> Iterator[str]:
    """Yield the parts of a Spark condition, joined by `AND`, that compare columns with constants.

    They are SQL. `column <=> constant` is written with `=`: neither selects a row for a null
    constant.
    """
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if _kind_of(node) == "And":
            waiting += [node.right(), node.left()]
        elif (text := _sql_of(node)) is not None:
            yield text


def _sql_of(node: JavaObject) -> str | None:
    """Return a Spark expression as SQL, None if it has more than columns and constants."""
    kind = _kind_of(node)
    if kind == "AttributeReference":
        return f"`{node.name()}`"
    if kind == "Literal":
        return str(node.sql())
    if kind in _OPERATORS:
        sides = _sql_of(node.left()), _sql_of(node.right())
        return None if None in sides else f"({sides[0]} {_OPERATORS[kind]} {sides[1]})"
    if kind in ("In", "InSet"):
        return _sql_of_list(node)
    return None


def _sql_of_list(node: JavaObject) -> str | None:
    """Return `column IN (constant, …)` as SQL, None if the left side is no column."""
    children = node.children()
    texts = [_sql_of(children.apply(number)) for number in range(children.size())]
    column = children.apply(0)
    if None in texts or _kind_of(column) != "AttributeReference":
        return None
    # The constants of InSet are no children of the node: take them from Spark's SQL text.
    return f"({texts[0]} {str(node.sql()).removeprefix(f'({column.sql()} ')}"


def _kind_of(node: JavaObject) -> str:
    """Return the name of a node's Scala class, such as `EqualTo`, without its package."""
    return str(node.getClass().getSimpleName())
