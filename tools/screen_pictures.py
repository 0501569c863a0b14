"""Pictures of what is no output of a command: the screen of `kctl top`, the charts of a report.

Both show a cluster that is made up, by the code that shows a real one, so that a test draws them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Final

from engine.host.memory import ManualClock
from engine.report.gathering import ReportOptions
from engine.report.report_building import build_report
from kctl.commands.report.page import cluster_page
from kctl.commands.report.reporting import document_of
from kctl.commands.top.screen import TopApp
from kctl.commands.top.top_request import TopRequest
from tools import shown_cluster
from tools.shown_cluster import INTERVAL_MS, SAMPLED_MS

#: The libraries that drew the pictures that are kept; others may place and colour otherwise.
DRAWN_WITH: Final = {"textual": "8.2.8", "rich": "15.0.0", "vl-convert-python": "1.9.0.post1"}
TOP: Final = "top"
REPORT: Final = "report-charts"
_SIZE: Final = (80, 12)
#: Of rich's template: a font from the network, and a remark.
_NOT_DRAWN: Final = re.compile(r"@font-face \{.*?\}|<!--.*?-->", re.DOTALL)
_FIGURE: Final = re.compile(
    r'<figure><svg [^>]*?viewBox="0 0 \d+ (?P<height>\d+)">(?P<drawing>.*?)</svg>'
    r"<figcaption>(?P<caption>.*?)</figcaption>",
    re.DOTALL,
)
#: An image has no parts that a reader's machine names or clicks.
_NOT_SEEN: Final = re.compile(r' (?:aria-[a-z]+|role|class|pointer-events)="[^"]*"')
_COLUMNS: Final = 3
_COLUMN_WIDTH: Final = 410
_CAPTION_HEIGHT: Final = 24
_GAP: Final = 24


def screen_pictures() -> dict[str, str]:
    """Return the pictures by their names."""
    return {TOP: top_picture(), REPORT: report_picture()}


def top_picture() -> str:
    """Return the screen of `kctl top` after two samples."""
    app = TopApp(TopRequest(), ManualClock(wall_ms=SAMPLED_MS + INTERVAL_MS + 2_000))

    async def shown() -> str:
        async with app.run_test(size=_SIZE) as pilot:
            for timed in shown_cluster.samples():
                app.take(timed)
            await pilot.pause()
            return app.export_screenshot(title="kctl top")

    svg = _NOT_DRAWN.sub("", asyncio.run(shown()))
    svg = re.sub(r"terminal-\d+", TOP, svg).replace("Fira Code, monospace", "monospace")
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def report_picture() -> str:
    """Return the charts of the page that `kctl report cluster --html` writes."""
    options = ReportOptions(interval_ms=INTERVAL_MS)
    report = build_report(shown_cluster.gathered(), options)
    page = cluster_page(document_of(report))
    return _sheet(_FIGURE.finditer(page))


def _sheet(figures: Iterable[re.Match[str]]) -> str:
    """Return drawings under their captions, on a ground that is light everywhere.

    Each is placed in the column that ends first.
    """
    lines = []
    ends = [_GAP] * _COLUMNS
    for figure in figures:
        y = min(ends)
        column = ends.index(y)
        x = _GAP + column * _COLUMN_WIDTH
        caption, drawing = figure["caption"], _plain(figure["drawing"])
        lines.append(f'<text x="{x}" y="{y + 12}" font-size="12">{caption}</text>')
        lines.append(f'<g transform="translate({x},{y + _CAPTION_HEIGHT})">{drawing}</g>')
        ends[column] += _CAPTION_HEIGHT + int(figure["height"]) + _GAP
    width, height = _COLUMNS * _COLUMN_WIDTH + _GAP, max(ends)
    head = (
        f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" color="#1c2127"'
        ' fill="#1c2127" font-family="system-ui, sans-serif">'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#fff" />'
    return "".join(f"{line}\n" for line in (head, ground, *lines, "</svg>"))


def _plain(drawing: str) -> str:
    """Return a drawing without what is not seen, its numbers with one place."""
    seen = _NOT_SEEN.sub("", drawing)
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.1f}", seen)
