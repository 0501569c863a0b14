"""Columns and conditions of a query from the text of Spark's plans, without access to its objects.

```
== Parsed Logical Plan ==
'Project ['topic]                             operators, one a line, inner ones indented
== Analyzed Logical Plan ==
topic: string                                 the columns of the result
== Optimized Logical Plan ==
Project [topic#3]
+- MapInArrow _refuse_to_read(id#0L)#42, [key#1, value#2, topic#3, …], false
```

Each attribute has a unique number. Attributes of a view that no operator above refers to are
unused, unless they are columns of the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.plan_conditions import CONSTANT_FOLDING, conditions_above
from engine.analysis.view_column import ViewColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Fields a line in the text of plans, so many that Spark leaves none out.
FIELDS_SETTING, FIELDS_MAX = "spark.sql.debug.maxToStringFields", "10000"
_RULES_SETTING = "spark.sql.optimizer.excludedRules"
_ATTRIBUTE = re.compile(r"(\w+)#(\d+)L?")
_OPERATOR = re.compile(r"^[\s:+|-]*'?(\w+)")
_SOURCE = re.compile(r"\bMapInArrow \w+\(.*?\)#\d+, \[(.*?)\]")
_WRITING = ("InsertInto", "Create", "Delete", "Merge", "Replace", "Update", "Append", "Overwrite")


class PlanText(NamedTuple):
    """The analyzed and the optimized plan of an extended explanation, as lines."""

    analyzed: list[str]
    optimized: list[str]


def explained(session: SparkSession, query: str) -> str:
    """Return Spark's plans of a query as text; `explain` does not run a statement that writes."""
    return str(session.sql(f"explain extended {query}").collect()[0][0])


def explain_unfolded(session: SparkSession, query: str) -> str:
    """Return Spark's plans of a query as text, without its constant folding.

    Folding would hide the constants that conditions compare columns with.
    """
    before = session.conf.get(_RULES_SETTING, None)
    session.conf.set(_RULES_SETTING, ",".join(filter(None, (before, CONSTANT_FOLDING))))
    try:
        return explained(session, query)
    finally:
        if before is None:
            session.conf.unset(_RULES_SETTING)
        else:
            session.conf.set(_RULES_SETTING, before)


def parse_plans(explained: str) -> PlanText | None:
    """Return the analyzed and the optimized plan in Spark's text, None if one is missing."""
    parts = {
        title: body.strip("\n").split("\n")
        for title, body in re.findall(r"^== (.+?) ==\n(.*?)(?=^== |\Z)", explained, re.M | re.S)
    }
    try:
        return PlanText(
            parts["Analyzed Logical Plan"],
            parts["Optimized Logical Plan"],
        )
    except KeyError:
        return None


def writing_operator(explained_query: str) -> str | None:
    """Return the first operator in a query's plan that writes, None if the query only reads.

    `explained_query` is Spark's text of its plans.
    """
    # A string in the query may look like a title, so split at the last one: reading too many lines
    # hides no operator.
    parsed = explained_query.rpartition("\n== Analyzed Logical Plan ==")[0]
    for line in parsed.split("\n")[1:]:
        operator = _OPERATOR.match(line)
        if operator and (operator[1].endswith("Command") or operator[1].startswith(_WRITING)):
            return operator[1]
    return None


def used_columns(
    plan: PlanText, views: Mapping[str, tuple[ViewColumn, ...]]
) -> dict[str, set[str]] | None:
    """Return the columns of each view that a query uses, by Spark's optimized plan.

    None for a plan of unknown form: then all columns are read.
    """
    of_result = set(re.findall(r"(?:^|, )(\w+): ", plan.analyzed[0]))
    referred: set[str] = set()
    sources: list[list[tuple[str, str]]] = []
    for rest, output in _operators(plan.optimized):
        referred |= {number for _, number in _ATTRIBUTE.findall(rest)}
        if output is not None:
            sources.append(_ATTRIBUTE.findall(output))
    used: dict[str, set[str]] = {}
    for source in sources:
        names = [name for name, _ in source]
        view = next((v for v, columns in views.items() if names == [c.name for c in columns]), None)
        if view is None:
            return None
        found = used.setdefault(view, set())
        found |= {name for name, number in source if number in referred or name in of_result}
    return used


def conditions_of_all(
    plan: PlanText, views: Mapping[str, tuple[ViewColumn, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the conditions, as SQL, that all rows of a view must meet, by Spark's plan.

    A view that is scanned several times is left out: it is read completely.
    """
    found: dict[str, list[tuple[str, ...]]] = {}
    for number, line in enumerate(plan.optimized):
        if (source := _SOURCE.search(line)) is None:
            continue
        attributes = _ATTRIBUTE.findall(source[1])
        names = [name for name, _ in attributes]
        view = next((v for v, columns in views.items() if names == [c.name for c in columns]), "")
        columns = {attribute: name for name, attribute in attributes}
        found.setdefault(view, []).append(conditions_above(plan.optimized, number, columns))
    # A view that is scanned several times is read completely.
    return {view: texts[0] for view, texts in found.items() if len(texts) == 1}


def _operators(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each line of a plan as `(line, None)`.

    For a view's scan it is `("", its output columns)`.
    """
    for line in lines:
        source = _SOURCE.search(line)
        yield (line, None) if source is None else ("", source[1])
