"""Select the splits that can have rows which meet a query's conditions.

Conditions are those that the engine's plan applies to every row, one text each. A condition of a
known form restricts the splits, any other is ignored: the engine checks all conditions again.

| condition | restricts |
|---|---|
| `topic = 'a'`, `topic in (…)`, an `or` of these | topics |
| `partition` compared with numbers: `=`, `in`, `<`, `<=`, `>`, `>=` | partitions |
| `offset` of a record, compared with numbers | segments, by the base offsets in their names |
| the same, and `timestamp`, `timestampMs` of a record compared with times | the part of a segment |

The last line is implemented in `narrowing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from engine.analysis.splits import Split

if TYPE_CHECKING:
    from sqlglot import exp

_INT64_MAX = (1 << 63) - 1
_INT64_MIN = -_INT64_MAX - 1
_OPTIONAL = "optional: "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: The constant of a comparison: a text, an integer, or a time (UTC if it has no zone).
Constant: TypeAlias = str | int | datetime


class RecordRange(NamedTuple):
    """A range of offsets and of times in ms; all four bounds are inclusive."""

    first_offset: int = 0
    last_offset: int = _INT64_MAX
    first_ms: int = _INT64_MIN
    last_ms: int = _INT64_MAX

    @property
    def has_times(self) -> bool:
        """Return True if the range excludes some timestamps, not only offsets."""
        return self.first_ms > _INT64_MIN or self.last_ms < _INT64_MAX

    def has(self, offset: int, time_ms: int) -> bool:
        """Return True if a record with this offset and time is in the range."""
        return (
            self.first_offset <= offset <= self.last_offset
            and self.first_ms <= time_ms <= self.last_ms
        )


#: The range that contains every record.
ALL_RECORDS = RecordRange()


class Bounds(NamedTuple):
    """Limits on rows: topics and partitions (None: no limit), and offsets and times."""

    topics: frozenset[str] | None = None
    partitions: Callable[[int], bool] | None = None
    records: RecordRange = ALL_RECORDS


class ValueRange(NamedTuple):
    """The values that a condition allows for a column: one of `among`, or from `least` to `most`.

    Times are in microseconds since the epoch.
    """

    among: frozenset[object] | None = None
    least: int = _INT64_MIN
    most: int = _INT64_MAX

    def has(self, value: int) -> bool:
        """Return True if the range contains a value of the column."""
        return self.least <= value <= self.most and (self.among is None or value in self.among)

    @property
    def is_of_numbers(self) -> bool:
        """Return True if `among` contains only numbers, or is None."""
        return all(isinstance(value, int) for value in self.among or ())

    @property
    def ends(self) -> tuple[int, int]:
        """Return the smallest and the largest allowed number, both inclusive."""
        numbers = [value for value in self.among or () if isinstance(value, int)]
        return min(numbers, default=self.least), max(numbers, default=self.most)


def bounds_of(conditions: Iterable[str], dialect: str = "duckdb") -> Bounds:
    """Return the topics, partitions, offsets and times that rows can have by the conditions.

    Conditions are SQL of `dialect`. In `a.b`, `a` is a column and `b` its field.
    """
    return bounds_of_ranges(_ranges(conditions, dialect))


def bounds_of_ranges(ranges: Iterable[tuple[str, ValueRange]]) -> Bounds:
    """Return the bounds of rows whose columns are all in their ranges.

    `ranges` are (column, allowed values); other columns are ignored.
    """
    bounds = Bounds()
    partitions: list[ValueRange] = []
    for column, values in ranges:
        if column == "topic" and values.among is not None:
            topics = frozenset(str(value) for value in values.among)
            bounds = bounds._replace(
                topics=topics if bounds.topics is None else bounds.topics & topics
            )
        elif not values.is_of_numbers:
            continue
        elif column == "partition":
            partitions.append(values)
        elif column in ("offset", "timestamp", "timestampMs"):
            bounds = bounds._replace(records=_narrow(bounds.records, column, values))
    if partitions:
        bounds = bounds._replace(partitions=lambda n: all(values.has(n) for values in partitions))
    return bounds


def _narrow(records: RecordRange, column: str, values: ValueRange) -> RecordRange:
    """Return `records` restricted by a condition on its offsets or times; bounds are inclusive.

    `timestamp` is in µs, `timestampMs` in ms.
    """
    least, most = values.ends
    if column == "offset":
        return records._replace(
            first_offset=max(records.first_offset, least),
            last_offset=min(records.last_offset, most),
        )
    if column == "timestamp":
        # Record timestamps are in milliseconds.
        least = _INT64_MIN if least == _INT64_MIN else -(-least // 1000)
        most = _INT64_MAX if most == _INT64_MAX else most // 1000
    return records._replace(
        first_ms=max(records.first_ms, least), last_ms=min(records.last_ms, most)
    )


def range_of_comparison(operator: str, value: Constant) -> ValueRange | None:
    """Return the values that `column operator value` allows; None for others than =, <, >, <=, >=.

    A time becomes a number of µs since 1970.
    """
    if isinstance(value, datetime):
        # In microseconds; the engine has cut further digits.
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        passed = zoned - _EPOCH
        value = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    if operator == "=":
        return ValueRange(frozenset((value,)))
    if not isinstance(value, int):
        return None
    if operator in (">", ">="):
        return ValueRange(least=value + (operator == ">"))
    return ValueRange(most=value - (operator == "<")) if operator in ("<", "<=") else None


def range_of_list(values: Iterable[Constant]) -> ValueRange | None:
    """Return the values that `column in (…)` allows, None for an empty list."""
    found = [range_of_comparison("=", value) for value in values]
    among = [one for values in found if values and values.among for one in values.among]
    return ValueRange(frozenset(among)) if among else None


def _ranges(conditions: Iterable[str], dialect: str) -> Iterator[tuple[str, ValueRange]]:
    """Yield (column, allowed values) for each condition that compares a column with constants.

    Nothing without the package sqlglot: then no split is left out.
    """
    if find_spec("sqlglot") is None:
        return
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    for condition in conditions:
        text = condition.removeprefix(_OPTIONAL)
        try:
            tree = sqlglot.parse_one(f"select 1 where {text}", read=dialect).find(exp.Where)
        except SqlglotError:
            # For example a field name with a quote, which DuckDB does not escape.
            continue
        waiting = [tree.this] if tree is not None else []
        while waiting:
            node = waiting.pop().unnest()
            if isinstance(node, exp.And):
                waiting += [node.left, node.right]
            elif (found := _range_of(node)) is not None:
                yield found


def _range_of(node: exp.Expression) -> tuple[str, ValueRange] | None:
    """Return the column of one condition and its allowed values; None for an unknown form."""
    from sqlglot import exp

    if isinstance(node, exp.Or):
        return _merge_either(_range_of(node.left.unnest()), _range_of(node.right.unnest()))
    if isinstance(node, exp.In) and _is_column(node.this):
        constants = [_constant(value) for value in node.expressions]
        values = range_of_list(value for value in constants if value is not None)
        return None if None in constants or values is None else (node.this.name, values)
    if isinstance(node, exp.Binary) and _is_column(node.left):
        value = _constant(node.right)
        operators = {exp.EQ: "=", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
        operator = operators.get(type(node))
        values = None if value is None or operator is None else range_of_comparison(operator, value)
        return None if values is None else (node.left.name, values)
    return None


def _is_column(node: exp.Expression) -> bool:
    """Return True for a column of the view; False for a field such as `decoded_value.offset`."""
    from sqlglot import exp

    return isinstance(node, exp.Column) and len(node.parts) == 1


def _merge_either(
    one: tuple[str, ValueRange] | None, other: tuple[str, ValueRange] | None
) -> tuple[str, ValueRange] | None:
    """Return the values that `a OR b` allows if both list values of one column, else None."""
    if one is None or other is None or one[0] != other[0]:
        return None
    if one[1].among is None or other[1].among is None:
        return None
    return one[0], ValueRange(one[1].among | other[1].among)


def _constant(node: exp.Expression) -> Constant | None:
    """Return the text, integer or time of a literal, None for any other expression."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Neg) and isinstance(inner := _constant(node.this), int):
        return -inner
    if isinstance(node, exp.Cast):
        return _cast(_constant(node.this), node.to)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this)
    return int(node.this) if node.is_int else None


def _cast(value: Constant | None, kind: exp.DataType) -> Constant | None:
    """Return a constant after a cast to an integer or timestamp type, None for other casts."""
    from sqlglot import exp

    of = exp.DataType.Type
    if isinstance(value, int) and kind.this in (of.BIGINT, of.INT):
        return value
    if not isinstance(value, str) or kind.this not in (
        of.TIMESTAMP, of.TIMESTAMPTZ, of.TIMESTAMPLTZ, of.TIMESTAMPNTZ
    ):  # fmt: skip
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def within(splits: Iterable[Split], bounds: Bounds) -> list[Split]:
    """Return the splits that can have rows within the bounds, without reading them."""
    return [split for split in splits if _can_have(split, bounds)]


def _can_have(split: Split, bounds: Bounds) -> bool:
    """Return True if a split may have records within the bounds, by partition and offsets."""
    if bounds.topics is not None and split.topic not in bounds.topics:
        return False
    if bounds.partitions is not None and not bounds.partitions(split.partition):
        return False
    if split.base_offset > bounds.records.last_offset:
        return False
    return split.next_base is None or split.next_base > bounds.records.first_offset
