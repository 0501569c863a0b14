"""Convert an error of Spark to one line without plans and stack traces.

| error | the line |
|---|---|
| in a query's text | Spark's own first sentence, without its class and SQLSTATE |
| an unknown column | its name, and similar names |
| an unknown view | its name, and similar names or all names |
| in a worker | the Python error that ended the task |
| in the JVM | its exception, which py4j puts on the line after its own |
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.analysis.columns import VIEWS
from engine.analysis.statements import unknown_column, unknown_view

_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+;?")
_TABLE = re.compile(r"view `([^`]+(?:`\.`[^`]+)*)`")
_NAME = re.compile(r"with name `([^`]+(?:`\.`[^`]+)*)`")


def failure_of(
    error: BaseException, tables: Sequence[str] = (), columns: Sequence[str] = ()
) -> str:
    """Return the reason of a failure on Spark as one line, without stack traces.

    `tables` and `columns` are further names to suggest for an unknown one, such as saved views.
    """
    text = str(error).strip()
    if _CLASS.match(text):
        return _query_failure(text, tables, columns)
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.split(":", 1)[0].endswith(("Error", "Exception"))]
    from_python = [line for line in named if line.startswith(("engine.", "pyarrow."))]
    return (from_python or named or lines or [type(error).__name__])[-1]


def _query_failure(text: str, tables: Sequence[str], columns: Sequence[str]) -> str:
    """Return the first sentence of Spark's error about a query's text.

    For an unknown name it has similar ones, also of `tables` and `columns`.
    """
    match = _CLASS.match(text)
    assert match is not None
    line = _STATE.sub("", text[match.end() :].split("\n", 1)[0])
    line = re.sub(r";?\s*line (\d+),? pos (\d+);?$", r" (line \1, pos \2)", line.strip())
    if match[1].startswith("UNRESOLVED_COLUMN") and (name := _NAME.search(line)):
        return unknown_column(name[1].replace("`.`", "."), more=columns)
    if match[1] == "TABLE_OR_VIEW_NOT_FOUND" and (table := _TABLE.search(line)):
        return unknown_view(table[1].replace("`.`", "."), [*VIEWS, *tables])
    return line.rstrip("; ")
