"""A report as an HTML page: findings first, then a section per part, with charts.

```
title, cluster, time            tiles: brokers, topics, bytes, writes, findings
findings by kind                meaning, subjects, the command to continue with
a section a part                charts, then a table
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Final

from engine.client.findings import SEVERITIES
from engine.client.lag_verdicts import LagVerdict
from kctl.commands.report.columns import PARTS, Part, shown_rows
from kctl.commands.report.page_charts import (
    broker_charts,
    deletion_chart,
    group_chart,
    topic_charts,
)
from kctl.render.columns import Column
from kctl.render.html_page import page_head
from kctl.render.rows import OutputRow
from kctl.render.table import cell_text, size_text
from kctl.render.visible import visible_cell
from kctl.time_text import time_text

#: Findings of one kind beyond this number are collapsed.
_SHOWN_FINDINGS: Final = 5
#: Maximum number of rows of a table; -o json has every row.
_SHOWN_ROWS: Final = 200
_STYLE = """
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none }
.tiles li { border: 1px solid #8885; border-radius: .4rem; padding: .4rem .8rem }
.tiles b { display: block; font-size: 1.2rem; font-variant-numeric: tabular-nums }
.finding { border-left: .3rem solid #8a97a3; padding: .1rem 0 .1rem .8rem; margin: .9rem 0 }
.finding.critical { border-color: #d13d3d } .finding.warning { border-color: #d9822b;
  background: none } .finding h3 { font-size: 1rem; margin: 0 } .finding p { margin: .2rem 0 }
.finding ul { margin: .2rem 0 .2rem -1rem }
code { background: #8882; border-radius: .2rem; padding: .05rem .3rem }
.charts { display: grid; gap: 1rem; margin: .6rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)) }
figure { margin: 0 } figcaption { color: #5b6570 } figure svg { max-width: 100%; height: auto;
  overflow: visible }
@media (max-width: 40rem) { ul.contents { columns: 2 } body { margin: 1rem auto } }
@media (prefers-color-scheme: dark) { figcaption { color: #9aa4ae }
  .finding.warning { background: none } }
"""
_CHARTS: dict[str, Callable[[OutputRow], list[tuple[str, str]]]] = {
    "imbalance": broker_charts,
    "groups": group_chart,
    "deletions": deletion_chart,
    "topics": topic_charts,
}


def cluster_page(document: OutputRow) -> str:
    """Return the report on a cluster as an HTML page; raises NoChartLibrary."""
    parts = [
        page_head(f"Kafka cluster {document['cluster_id'] or ''}".strip(), _STYLE),
        f"<p>{escape(_when(document))}</p>\n",
        *_tiles_html(document),
        *_contents_html(document),
    ]
    for part in PARTS:
        if part.key == "changes" and document["since_ms"] is None:
            continue
        parts += (
            _findings_html(part, document)
            if part.key == "findings"
            else _section_html(part, document)
        )
    return "".join([*parts, "</body></html>\n"])


def _when(document: OutputRow) -> str:
    """Return the line below the title: when the report was made, and what it compares with."""
    sampled = f"rates of {document['interval_ms'] / 1000:g} s"
    since = document["since_ms"]
    compared = "" if since is None else f"; compared with {time_text(since)}"
    return f"{time_text(document['made_at_ms'])}, {sampled}{compared}"


def _tiles_html(document: OutputRow) -> Iterator[str]:
    """Yield the HTML of the numbers at the top of the page: brokers, topics, bytes, findings."""
    rate = document["bytes_per_s"]
    severities = [finding["severity"] for finding in document["findings"]]
    tiles = [
        ("brokers", str(document["broker_count"])),
        ("topics", str(document["topic_count"])),
        ("partitions", str(document["partition_count"])),
        ("bytes of all replicas", size_text(document["size_bytes"])),
        ("written", "not known" if rate is None else f"{size_text(rate)}/s"),
        *((severity, str(severities.count(severity))) for severity in SEVERITIES),
    ]
    yield '<ul class="tiles">\n'
    for name, text in tiles:
        yield f"<li><b>{escape(text)}</b>{escape(name)}</li>\n"
    yield "</ul>\n"


def _contents_html(document: OutputRow) -> Iterator[str]:
    """Yield the HTML of the table of contents: sections with numbers of rows.

    The section on changes is there only if reports are compared.
    """
    yield '<ul class="contents">\n'
    for part in PARTS:
        if part.key != "changes" or document["since_ms"] is not None:
            count = len(_rows(part, document))
            yield f'<li><a href="#{part.key}">{escape(part.title)}</a> ({count})</li>\n'
    yield "</ul>\n"


def _head(part: Part) -> str:
    """Return the HTML of a section's heading and explanation."""
    title, meaning = escape(part.title), escape(part.meaning)
    return f'<h2 id="{part.key}">{title}</h2>\n<p class="meaning">{meaning}</p>\n'


def _findings_html(part: Part, document: OutputRow) -> Iterator[str]:
    """Yield the HTML of the findings, grouped by severity and kind.

    Beyond `_SHOWN_FINDINGS` of a kind they are collapsed.
    """
    yield _head(part)
    by_kind: dict[tuple[str, str], list[OutputRow]] = {}
    for finding in document["findings"]:
        by_kind.setdefault((finding["severity"], finding["finding"]), []).append(finding)
    if not by_kind:
        yield "<p>nothing is wrong</p>\n"
    for (severity, kind), found in by_kind.items():
        count = f" × {len(found)}" if len(found) > 1 else ""
        yield f'<div class="finding {escape(severity)}">'
        yield f"<h3>{escape(kind)}{count} <small>{escape(severity)}</small></h3>\n"
        yield f"<p>{escape(_sentence(found[0]['meaning']))}</p>\n"
        yield from _finding_list_html(found[:_SHOWN_FINDINGS])
        if len(found) > _SHOWN_FINDINGS:
            more = len(found) - _SHOWN_FINDINGS
            yield f"<details><summary>{more} more</summary>\n"
            yield from _finding_list_html(found[_SHOWN_FINDINGS:])
            yield "</details>\n"
        yield "</div>\n"


def _sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _finding_list_html(findings: Sequence[OutputRow]) -> Iterator[str]:
    """Yield the HTML list of findings; their command follows once if it is the same for all."""
    commands = {finding["command"] for finding in findings}
    yield "<ul>\n"
    for finding in findings:
        shown = escape(visible_cell(finding["command"]))
        command = f"<br><code>{shown}</code>" if len(commands) > 1 else ""
        subject, cause = (escape(visible_cell(finding[key])) for key in ("subject", "cause"))
        yield f"<li><b>{subject}</b>: {cause}{command}</li>\n"
    yield "</ul>\n"
    if len(commands) == 1:
        yield f"<p><code>{escape(visible_cell(commands.pop()))}</code></p>\n"


def _rows(part: Part, document: OutputRow) -> list[OutputRow]:
    """Return the rows of a section; of groups only those whose verdict is not OK."""
    rows = shown_rows(part, document)
    if part.key == "groups":
        return [row for row in rows if row["verdict"] != LagVerdict.OK.value]
    return rows


def _section_html(part: Part, document: OutputRow) -> Iterator[str]:
    """Yield the HTML of a section other than findings: its charts, then its rows as a table."""
    yield _head(part)
    draw = _CHARTS.get(part.key)
    charts = [] if draw is None else draw(document)
    if charts:
        yield '<div class="charts">\n'
        for caption, drawing in charts:
            yield f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>\n"
        yield "</div>\n"
    rows = _rows(part, document)
    if part.key == "groups" and len(rows) < len(document["groups"]):
        keep_up = len(document["groups"]) - len(rows)
        yield f"<p>{keep_up} of {len(document['groups'])} groups keep up.</p>\n"
    elif not rows:
        yield "<p>none</p>\n"
    if rows:
        yield from _table_html(part.columns, rows)


def _table_html(columns: Sequence[Column], rows: Sequence[OutputRow]) -> Iterator[str]:
    """Yield the HTML of a table, with at most `_SHOWN_ROWS` rows.

    Columns that only `-o wide` shows are left out.
    """
    shown = [column for column in columns if not column.wide]
    yield '<div class="scroll"><table><thead><tr>'
    for column in shown:
        yield f"<th{_class(column)}>{escape(column.heading.lower())}</th>"
    yield "</tr></thead><tbody>\n"
    for row in rows[:_SHOWN_ROWS]:
        cells = (
            f"<td{_class(column)}>{_cell_html(column, row[column.key])}</td>" for column in shown
        )
        yield f"<tr>{''.join(cells)}</tr>\n"
    yield "</tbody></table></div>\n"
    if len(rows) > _SHOWN_ROWS:
        yield f"<p>the first {_SHOWN_ROWS} of {len(rows)} rows; -o json has all</p>\n"


def _cell_html(column: Column, value: Any) -> str:
    """Return a value as HTML, formatted by the kind of its column."""
    if value is None:
        return "<span class=null>–</span>"
    if column.is_size:
        return escape(size_text(value))
    if column.is_time:
        return escape(time_text(value))
    if column.key == "values":
        return "<br>".join(f"{v['broker_id']}: {escape(cell_text(v['value']))}" for v in value)
    return escape(cell_text(value))


def _class(column: Column) -> str:
    """Return the attribute that aligns the numbers of a column to the right; "" for texts."""
    return ' class="number"' if column.right else ""
