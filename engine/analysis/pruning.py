"""Which splits can have rows that a query's conditions let through.

Conditions are those that the engine's plan puts to every row, one text each. What is understood
narrows what is read; anything else narrows nothing, and the engine puts all conditions again.

| condition | narrows |
|---|---|
| `topic = 'a'`, `topic in (…)`, an `or` of these | topics |
| `partition = 3`, `partition in (…)`, `<`, `<=`, `>`, `>=` | partitions |
| `offset` of a record, compared with numbers | segments, by the offsets that are their names |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.splits import Split

if TYPE_CHECKING:
    from sqlglot import exp

_INT64_MAX = (1 << 63) - 1
_OPTIONAL = "optional: "


class Bounds(NamedTuple):
    """What rows can be of: topics and partitions (None means any), offsets from first to last."""

    topics: frozenset[str] | None = None
    partitions: Callable[[int], bool] | None = None
    first_offset: int = 0
    last_offset: int = _INT64_MAX


class _Range(NamedTuple):
    """The values that a condition lets a column have: one of `among`, or from least to most."""

    among: frozenset[object] | None = None
    least: int = -_INT64_MAX - 1
    most: int = _INT64_MAX

    def has(self, value: int) -> bool:
        return self.least <= value <= self.most and (self.among is None or value in self.among)


def bounds_of(conditions: Iterable[str]) -> Bounds:
    """Return what rows can be of that meet all conditions, each in DuckDB's SQL."""
    bounds = Bounds()
    partitions: list[_Range] = []
    for column, values in _ranges(conditions):
        if column == "topic" and values.among is not None:
            topics = frozenset(str(value) for value in values.among)
            bounds = bounds._replace(
                topics=topics if bounds.topics is None else bounds.topics & topics
            )
        elif column == "partition":
            partitions.append(values)
        elif column == "offset":
            numbers = [value for value in values.among or () if isinstance(value, int)]
            bounds = bounds._replace(
                first_offset=max(bounds.first_offset, min(numbers, default=values.least)),
                last_offset=min(bounds.last_offset, max(numbers, default=values.most)),
            )
    if partitions:
        bounds = bounds._replace(partitions=lambda n: all(values.has(n) for values in partitions))
    return bounds


def _ranges(conditions: Iterable[str]) -> Iterator[tuple[str, _Range]]:
    """Yield each column that conditions compare with constants, and the values it can have."""
    import sqlglot
    from sqlglot import exp

    for condition in conditions:
        text = condition.removeprefix(_OPTIONAL)
        try:
            tree = sqlglot.parse_one(f"select 1 where {text}", read="duckdb").find(exp.Where)
        except sqlglot.ParseError:
            continue
        waiting = [tree.this] if tree is not None else []
        while waiting:
            node = waiting.pop().unnest()
            if isinstance(node, exp.And):
                waiting += [node.left, node.right]
            elif (found := _range_of(node)) is not None:
                yield found


def _range_of(node: exp.Expression) -> tuple[str, _Range] | None:
    """Return the column of one condition and its values; None for what is not understood."""
    from sqlglot import exp

    if isinstance(node, exp.Or):
        return _either(_range_of(node.left.unnest()), _range_of(node.right.unnest()))
    if isinstance(node, exp.In) and isinstance(node.this, exp.Column):
        listed = [_constant(value) for value in node.expressions]
        return None if None in listed or not listed else (node.this.name, _Range(frozenset(listed)))
    if isinstance(node, exp.Binary) and isinstance(node.left, exp.Column):
        values = _compared(node, _constant(node.right))
        return None if values is None else (node.left.name, values)
    return None


def _either(
    one: tuple[str, _Range] | None, other: tuple[str, _Range] | None
) -> tuple[str, _Range] | None:
    """Return the values of either condition, where both list those of the same column."""
    if one is None or other is None or one[0] != other[0]:
        return None
    if one[1].among is None or other[1].among is None:
        return None
    return one[0], _Range(one[1].among | other[1].among)


def _compared(node: exp.Binary, value: str | int | None) -> _Range | None:
    """Return the values on the left of a comparison with a constant."""
    from sqlglot import exp

    if isinstance(node, exp.EQ) and value is not None:
        return _Range(frozenset((value,)))
    if not isinstance(value, int):
        return None
    if isinstance(node, exp.GT | exp.GTE):
        return _Range(least=value + isinstance(node, exp.GT))
    if isinstance(node, exp.LT | exp.LTE):
        return _Range(most=value - isinstance(node, exp.LT))
    return None


def _constant(node: exp.Expression) -> str | int | None:
    """Return the text or the whole number of a literal, None for anything else."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Neg) and isinstance(inner := _constant(node.this), int):
        return -inner
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.is_int else None


def within(splits: Iterable[Split], bounds: Bounds) -> list[Split]:
    """Return the splits that can have rows of these bounds."""
    return [split for split in splits if _can_have(split, bounds)]


def _can_have(split: Split, bounds: Bounds) -> bool:
    if bounds.topics is not None and split.topic not in bounds.topics:
        return False
    if bounds.partitions is not None and not bounds.partitions(split.partition):
        return False
    if split.base_offset > bounds.last_offset:
        return False
    return split.next_base is None or split.next_base > bounds.first_offset
