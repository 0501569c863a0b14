"""The lines above the rows: cluster, age of the values, counts, current view."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.lag_verdicts import LagVerdict
from engine.watching.watch import UP
from engine.watching.watch_rows import Frame
from kctl.commands.top.views import VIEWS, Order, Place
from kctl.render.table import size_text

_MS_PER_S: Final = 1000
KEYS: Final = "1-5 view  enter open  esc back  s sort  r turn  / filter  p pause  ? keys  q end"
HELP: Final = """
1 2 3 4 5       brokers, partitions in trouble, topics, groups, moves
up down         a row up or down; page up, page down, home, end
enter           open a row: a topic, a group, a broker: its partitions
                a partition or a move: its replicas
esc             back; takes a filter away first
s  S            sort by the next column, or the one before
r               turn the order round
/               filter by words; enter goes on, esc takes it away
p               keep the figures as they are, or go on
q               end

The column that rows are sorted by is underlined. BYTES/S and REC/S are what
producers write. LAG/S is how fast unread records become more. BEHIND-S is for
how long the first of them waits, at least. A broker gets two requests in a
second at most.
"""


class Shown(NamedTuple):
    """The state of the screen apart from the frame; `error` is the error of the last sample."""

    place: Place
    order: Order
    filter_text: str
    row_count: int
    is_paused: bool = False
    error: str | None = None


def head_lines(frame: Frame | None, shown: Shown, now_ms: int) -> list[str]:
    """Return the lines above the table of `kctl top`, the most important first.

    `frame` has the values of the last sample, None before the first; `now_ms` is the present time.
    """
    if frame is None:
        why = (
            "the first sample is under way" if shown.error is None else f"no answer: {shown.error}"
        )
        return [why, "", _views_line(shown.place), ""]
    return [
        _cluster_line(frame, shown, now_ms),
        _counts_line(frame, shown),
        _views_line(shown.place),
        _rows_line(shown),
    ]


def _cluster_line(frame: Frame, shown: Shown, now_ms: int) -> str:
    """Return the line on the cluster: age of the values, live brokers, controller and id."""
    age_s = max(now_ms - frame.sampled_at_ms, 0) // _MS_PER_S
    age = f"figures {age_s} s old"
    if shown.is_paused:
        age = f"paused, {age}"
    up = sum(broker.state == UP for broker in frame.brokers)
    brokers = f"brokers {up} of {len(frame.brokers)} up"
    parts = [age, brokers, f"cluster {frame.cluster_id or '-'}"]
    if frame.controller_id is not None:
        has_one = frame.controller_id >= 0
        parts.insert(2, f"controller {frame.controller_id}" if has_one else "no controller")
    return "  ".join(parts)


def _counts_line(frame: Frame, shown: Shown) -> str:
    """Return the line with counts of partitions, groups and moves, or the last sample's error."""
    if shown.error is not None:
        return f"no answer since then: {shown.error}"
    rates = [topic.bytes_per_s for topic in frame.topics if topic.bytes_per_s is not None]
    written = f"in {size_text(sum(rates))}/s" if rates else "in -"
    behind = sum(group.verdict != LagVerdict.OK.value for group in frame.groups)
    parts = [
        f"partitions {len(frame.partitions)}, {len(frame.troubled)} in trouble",
        f"groups {len(frame.groups)}, {behind} behind",
        f"moves {len(frame.moves)}",
        written,
    ]
    if frame.failures:
        parts.append(f"{len(frame.failures)} requests failed")
    return "  ".join(parts)


def _views_line(place: Place) -> str:
    """Return the line with the views and their keys, the current view in brackets."""
    tabs = []
    for number, view in enumerate(VIEWS, 1):
        tab = f"{number} {view.name}"
        tabs.append(f"[{tab}]" if place.view is view else f" {tab} ")
    return " ".join(tabs)


def _rows_line(shown: Shown) -> str:
    """Return the line on the table: number of rows, sort order and filter."""
    place, order = shown.place, shown.order
    column = next(column for column in place.view.columns if column.key == order.key)
    direction = "down" if order.is_descending else "up"
    line = f"{place.title}: {shown.row_count}  by {column.heading} {direction}"
    return f"{line}  filter: {shown.filter_text}" if shown.filter_text else line
