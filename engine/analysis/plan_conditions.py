"""Conditions on the rows of a view, read from the text of Spark's optimized plan.

```
Filter ((topic#4 = orders) AND (offset#6L >= cast(100 as bigint)))
+- MapInArrow _refuse_to_read(id#0L)#1, [key#2, value#3, topic#4, …], false
```

The plan has string constants without quotes: a constant such as `x) AND (topic#4 = y` would read as
a part of the condition. Conditions are read correctly under three rules:

1. The plan has only known views, and no string constant of the query, or of the saved views that it
   uses, contains a parenthesis, a `#`, a backslash, a line end, `AND` or `OR`.
2. No string is computed in the plan: it is made without the rule CONSTANT_FOLDING.
3. Each binary operator is in its own parentheses. Parentheses with `AND` and without `OR` at their
   level contain conditions that must all be met.

A condition of a form that is not below is ignored.

| form | columns |
|---|---|
| `(column#1 = constant)`, `<=>`, `<`, `<=`, `>`, `>=` | all of these; `topic` with the first two |
| `column#1 IN (constant,…)`, `column#1 INSET constant, …` | topic, partition, offset, timestampMs |
| `(a OR b)` of these | the same |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from engine.analysis.sql_text import quoted_texts

#: The rule of Spark's optimizer that evaluates constant expressions.
CONSTANT_FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
_TOPIC = r"[\w.-]+"
_NUMBER = r"-?\d+|cast\(-?\d+ as (?:big)?int\)"
_TIME = r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)?)?"
_CONSTANTS = {
    "topic": _TOPIC,
    "partition": _NUMBER,
    "offset": _NUMBER,
    "timestampMs": _NUMBER,
    "timestamp": rf"{_TIME}|cast\({_TIME} as timestamp\)",
}
_COMPARISON = re.compile(r"\((\w+)#(\d+)L? (=|<=>|<|<=|>|>=) (.+)\)")
_LIST = re.compile(r"(\w+)#(\d+)L? (?:IN \((.+)\)|INSET (.+))")
_CAST = re.compile(r"cast\((.+) as (\w+)\)")
#: Bits of integer types: a cast of a number outside of the type's range changes it.
_BITS = {"int": 32, "bigint": 64}
_VIEW = re.compile(r"^[\s:+|-]*View \(`([^`]*)`", re.M)
_MISLEADING = re.compile(r"[()#\\\r\n]|\b(?:AND|OR)\b")


def are_readable(texts: Iterable[str]) -> bool:
    """Return True if no text constant of these queries could be taken for a part of a condition.

    Otherwise the conditions in Spark's plan text are not used.
    """
    return not any(_MISLEADING.search(text[1:-1]) for of in texts for text in quoted_texts(of))


def has_views_alone(analyzed: Iterable[str], known: Collection[str]) -> bool:
    """Return True if a query reads only views named in `known`, by its analyzed plan.

    `analyzed` are the lines of the plan.
    """
    return {name.lower() for name in _VIEW.findall("\n".join(analyzed))} <= {
        name.lower() for name in known
    }


def conditions_above(lines: list[str], number: int, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the conditions of the filter above a scan in Spark's plan, as SQL.

    `number` is the plan line of the scan. `columns` maps the attribute numbers of the plan to
    column names. Empty without a filter directly above it.
    """
    above, line = lines[number - 1] if number else "", lines[number]
    indent, is_filter, condition = above.partition("Filter ")
    # The plan of a subquery in the filter is on the same line after a colon.
    if not is_filter or indent.strip(" :+-") or line[len(indent) :][:3] != "+- ":
        return ()
    read = (_sql_of(part, columns) for part in _conjuncts(condition.strip()))
    return tuple(text for text in read if text is not None)


def _conjuncts(text: str) -> Iterator[str]:
    """Yield the conditions that `AND` joins, also in parentheses; the text itself without `AND`."""
    parts = _split_at(text, " AND ")
    if len(parts) == 1 or len(_split_at(text, " OR ")) > 1:
        yield text
        return
    for part in parts:
        yield from _conjuncts(part)


def _split_at(text: str, keyword: str) -> list[str]:
    """Split a text at a keyword outside of parentheses; return [text] if the keyword is absent."""
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(inner):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return [text]
        if not depth and inner.startswith(keyword, place):
            parts.append(inner[start:place])
            start = place + len(keyword)
    return [*parts, inner[start:]] if parts and not depth else [text]


def _sql_of(text: str, columns: Mapping[str, str]) -> str | None:
    """Return one condition of a plan as SQL, None for a condition of an unknown form."""
    if len(either := _split_at(text, " OR ")) > 1:
        read = [_sql_of(part, columns) for part in either]
        return None if None in read else f"({' OR '.join(filter(None, read))})"
    if compared := _COMPARISON.fullmatch(text):
        name, number, operator, constant = compared.groups()
        value = _constant(name, constant) if columns.get(number) == name else None
        if value is None or (name == "topic" and operator not in ("=", "<=>")):
            return None
        return f"{name} {'=' if operator == '<=>' else operator} {value}"
    if listed := _LIST.fullmatch(text):
        name, number, *lists = listed.groups()
        constants = (lists[0] or lists[1]).split(",")
        values = [_constant(name, constant.strip()) for constant in constants]
        if columns.get(number) == name and name != "timestamp" and None not in values:
            return f"{name} IN ({', '.join(filter(None, values))})"
    return None


def _constant(name: str, text: str) -> str | None:
    """Return a constant of a plan as SQL, None if it is none of the column's type."""
    if name not in _CONSTANTS or not re.fullmatch(_CONSTANTS[name], text, re.A):
        return None
    cast = _CAST.fullmatch(text)
    plain = cast[1] if cast else text
    if cast and (bits := _BITS.get(cast[2])) and not -1 << bits - 1 <= int(plain) < 1 << bits - 1:
        return None
    if name == "topic":
        return f"'{plain}'"
    return f"TIMESTAMP '{plain}'" if name == "timestamp" else plain
