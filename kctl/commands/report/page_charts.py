"""Charts of a report's page: their values and captions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kctl.commands.report.charts import Bar, StackSegment, bar_chart, stacked_columns_chart
from kctl.render.rows import OutputRow
from kctl.render.table import size_text
from kctl.time_text import time_text

#: Captions with their charts as SVG.
Charts = list[tuple[str, str]]

_BARS_MAX: Final = 12
_SERIES_MAX: Final = 5
_COLUMNS_MAX: Final = 14
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_UNITS: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def broker_charts(document: OutputRow) -> Charts:
    """Return charts of leaders, bytes and writes by broker, each as caption and SVG.

    A chart without any value above 0 is left out.
    """
    charts = []
    for key, caption, is_size in (
        ("leader_count", "Leaders by broker", False),
        ("size_bytes", "Bytes by broker", True),
        ("bytes_per_s", "Bytes written in a second, by the broker that leads", True),
    ):
        rows = [row for row in document["brokers"] if row[key] is not None]
        amounts = [(f"broker {row['broker_id']}", row[key]) for row in rows]
        if not any(value for _, value in amounts):
            continue
        mean = sum(value for _, value in amounts) / len(amounts)
        drawing = bar_chart(_largest_bars(amounts, is_size=is_size, is_sorted=False), mean)
        more = f"; the largest {_BARS_MAX} of {len(amounts)}" if len(amounts) > _BARS_MAX else ""
        charts.append((f"{caption}, and the mean{more}", drawing))
    return charts


def topic_charts(document: OutputRow) -> Charts:
    """Return charts of the largest topics, and of those with the most writes: caption and SVG."""
    charts = []
    for key, caption in (
        ("size_bytes", "Largest topics, by bytes at the leaders"),
        ("bytes_per_s", "Topics by bytes written in a second"),
    ):
        bars = _largest_bars(
            [(row["topic"], row[key] or 0) for row in document["topics"]], is_size=True
        )
        if bars:
            charts.append((caption, bar_chart(bars)))
    return charts


def group_chart(document: OutputRow) -> Charts:
    """Return the chart of groups with the largest lag; empty if no group has one."""
    bars = _largest_bars([(row["group"], row["lag"]) for row in document["groups"]], is_size=False)
    return [("Groups by unread records", bar_chart(bars))] if bars else []


def deletion_chart(document: OutputRow) -> Charts:
    """Return the chart of bytes that retention will delete, by topic and day, or by hour.

    Hours are shown if the last deletion is at most _COLUMNS_MAX hours away; topics with few bytes
    are summed up. Empty if nothing will be deleted.
    """
    rows = document["deletions"]
    if not rows:
        return []
    now_ms = document["made_at_ms"]
    is_by_hour = rows[-1]["at_ms"] - now_ms < _COLUMNS_MAX * _HOUR_MS
    step_ms = _HOUR_MS if is_by_hour else _DAY_MS
    first = now_ms // step_ms
    sums: dict[str, int] = {}
    for row in rows:
        sums[row["topic"]] = sums.get(row["topic"], 0) + row["freed_bytes"]
    named = set(sorted(sums, key=lambda name: (-sums[name], name))[:_SERIES_MAX])
    heights: dict[tuple[int, str], int] = {}
    for row in rows:
        number = row["at_ms"] // step_ms - first
        if number < _COLUMNS_MAX:
            series = row["topic"] if row["topic"] in named else "other topics"
            heights[number, series] = heights.get((number, series), 0) + row["freed_bytes"]
    unit, unit_bytes = _unit(max(heights.values(), default=0))
    parts = []
    for number in range(max((number for number, _ in heights), default=0) + 1):
        label = time_text((first + number) * step_ms)
        column = f"{label[11:13]}:00" if is_by_hour else label[5:10]
        for series in (*sorted(named), "other topics"):
            height = heights.get((number, series), 0)
            if height or series == min(named):
                parts.append(StackSegment(column, series, height / unit_bytes))
    if not heights:
        return []
    word = "hour" if is_by_hour else "day"
    return [(f"Bytes that retention deletes, by {word} (UTC)", stacked_columns_chart(parts, unit))]


def _largest_bars(
    amounts: Iterable[tuple[str, int]], *, is_size: bool, is_sorted: bool = True
) -> list[Bar]:
    """Return bars of the largest amounts, sorted.

    Unless `is_sorted`, up to `_BARS_MAX` amounts keep their order, and zeros are included.
    """
    rows = list(amounts)
    if is_sorted:
        rows = [(name, value) for name, value in rows if value > 0]
    if is_sorted or len(rows) > _BARS_MAX:
        rows = sorted(rows, key=lambda row: (-row[1], row[0]))[:_BARS_MAX]
    return [Bar(name, value, size_text(value) if is_size else f"{value:,}") for name, value in rows]


def _unit(most_bytes: int) -> tuple[str, int]:
    """Return name and bytes of the largest unit that is not above `most_bytes`, for an axis."""
    return next((unit for unit in _UNITS if most_bytes >= unit[1]), ("bytes", 1))
