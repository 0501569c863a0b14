"""Reports as one self-contained page of HTML: no script, no font, no connection.

```
title, time and source            contents: a line a report, with its number of rows
findings: damage of the logs      a table a report, under its title and its explanation
```

A column of numbers whose name contains bytes or records has a bar in each cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, cast

from engine.limits import FINDINGS_OF_A_KIND_MAX
from kctl.log_damage import HINT, damage_text
from kctl.log_queries import shown_value
from kctl.render.html_page import page_head

if TYPE_CHECKING:
    from engine.analysis.problem import Problem
    from engine.analysis.reports.report import Report
    from engine.analysis.statements import QueryResult

_BARRED = ("bytes", "records", "batches", "missing", "segments")


def report_page(
    results: list[tuple[Report, QueryResult]],
    problems: Iterable[Problem],
    sources: list[str],
    made_at: str,
    damage: list[Problem] | None = None,
) -> str:
    """Return the results of reports as an HTML page.

    `problems` are differences between replicas, `damage` that of the logs read, `sources` the
    directories, and `made_at` the time to display.
    """
    made = f"<p>{escape(made_at)}: {escape(', '.join(sources))}</p>\n"
    warnings = [
        f'<p class="warning">{escape(p.segment)}: {escape(p.message)}</p>\n' for p in problems
    ]
    if damage:
        warnings += _damage_html(damage)
    parts = [page_head("Kafka logs"), made, *warnings, *_contents_html(results)]
    for report, result in results:
        parts += _report_html(report, result)
    return "".join([*parts, "</body></html>\n"])


def _damage_html(problems: list[Problem]) -> Iterator[str]:
    """Yield the HTML of the logs' damage: a summary, and the first places."""
    yield f'<p class="warning">The logs have {escape(damage_text(problems))}</p>\n'
    yield f"<p>{escape(HINT)}</p>\n<ul>\n"
    for problem in problems[:FINDINGS_OF_A_KIND_MAX]:
        where = f"{problem.segment} at position {problem.position}"
        yield f"<li>{escape(where)}: {escape(problem.message)}</li>\n"
    if len(problems) > FINDINGS_OF_A_KIND_MAX:
        yield f"<li>and {len(problems) - FINDINGS_OF_A_KIND_MAX} more</li>\n"
    yield "</ul>\n"


def _contents_html(results: list[tuple[Report, QueryResult]]) -> Iterator[str]:
    """Yield the HTML of the table of contents: reports with numbers of rows.

    Nothing for a single report.
    """
    if len(results) == 1:
        return
    yield '<ul class="contents">\n'
    for report, result in results:
        name, count = escape(report.name), len(result.rows)
        yield f'<li><a href="#{name}">{name}</a> ({count}{"+" if result.is_cut else ""})</li>\n'
    yield "</ul>\n"


def _report_html(report: Report, result: QueryResult) -> Iterator[str]:
    """Yield the HTML of one report's table, with bars in the cells of counts and sizes."""
    yield f'<h2 id="{escape(report.name)}">{escape(report.title)}</h2>\n'
    yield f'<p class="meaning">{escape(report.meaning)}</p>\n'
    if not result.rows:
        yield "<p>nothing</p>\n"
        return
    numbers = {name for name in result.columns if _is_number(result, name)}
    largest = {
        name: max((row[name] or 0 for row in result.rows), default=0)
        for name in numbers
        if any(word in name.lower() for word in _BARRED)
    }
    yield '<div class="scroll"><table><thead><tr>'
    for name in result.columns:
        yield f"<th{_class(name in numbers)}>{escape(name)}</th>"
    yield "</tr></thead><tbody>\n"
    for row in result.rows:
        cells = (_cell_html(row[n], n in numbers, largest.get(n, 0)) for n in result.columns)
        yield f"<tr>{''.join(cells)}</tr>\n"
    yield "</tbody></table></div>\n"
    if result.is_cut:
        yield f"<p>only the first {len(result.rows)} rows</p>\n"


def _is_number(result: QueryResult, name: str) -> bool:
    """Return True if a column has values that are not null, and all of them are numbers."""
    values = [row[name] for row in result.rows if row[name] is not None]
    return bool(values) and all(_is_plain_number(shown_value(value)) for value in values)


def _is_plain_number(value: object) -> bool:
    """Return True if a value is a number; False for a bool, which is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell_html(value: object, is_number: bool, largest: float) -> str:
    """Return a value as a table cell; a number with a bar relative to `largest`."""
    shown = shown_value(value)
    if shown is None:
        return f"<td{_class(is_number)}><span class=null>null</span></td>"
    text = f"{shown:.6g}" if isinstance(shown, float) else str(shown)
    if not largest or not is_number:
        return f"<td{_class(is_number)}>{escape(text)}</td>"
    share = max(0, min(100, round(100 * float(cast("float", shown)) / float(largest))))
    bar = f"background: linear-gradient(to left, #4c90f044 {share}%, transparent {share}%)"
    return f'<td class="number" style="{bar}">{escape(text)}</td>'


def _class(is_number: bool) -> str:
    """Return the attribute that aligns numbers to the right; "" for texts."""
    return ' class="number"' if is_number else ""
