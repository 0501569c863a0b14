"""Live display of a run of `kctl perf` on stderr: progress, and charts of its intervals.

```
123,456 of 1,000,000 records, 12 %, 20 s left, 3.91 MiB/s
records/s ▅▆▇█▇▆▁▁▆▇ 41,000, at most 43,120
p99 ms    ▂▂▂▂▂▂  █▂ 12.5, at most 310
```

Only on a terminal, and cleared at the end. Charts scale from 0 to their largest value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final

from engine.measuring.measurement import Interval, Measurement
from kctl.render.bars import ASCII_HEIGHTS, HEIGHTS, is_known, sparkline
from kctl.render.status_line import share_and_left
from kctl.render.table import size_text

if TYPE_CHECKING:
    from rich.live import Live

_NS_PER_S: Final = 1_000_000_000
#: Time between two drawings: short enough to be live, long enough not to slow the run down.
_EVERY_NS: Final = _NS_PER_S // 4
_NAME_COLUMNS: Final = 10
#: Columns of the figures after a chart, if the chart keeps at least as many.
_FIGURE_COLUMNS: Final = 32
_CHART_COLUMNS_MIN: Final = 10
_WHOLE_FROM: Final = 100


class RunDisplay:
    """Draws the progress of a run a few times per second; silent if stderr is no terminal."""

    def __init__(self, record_count: int, now_ns: Callable[[], int], *, has_charts: bool) -> None:
        """Create the display of a measurement of `record_count` records, drawn on a terminal only.

        Without `has_charts` it is one line. `now_ns` is the clock of the measurement.
        """
        self._record_count = record_count
        self._now_ns = now_ns
        self._has_charts = has_charts
        #: Time at which the next drawing is due.
        self._next_ns = 0
        #: 99th percentiles of the last intervals, by start time.
        self._p99s_ms: dict[float, float | None] = {}
        #: The drawing on stderr; None before it starts, or if stderr is no terminal.
        self._live: Live | None = None

    def __enter__(self) -> RunDisplay:
        """Start drawing, if stderr is a terminal."""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
            self._draw(self._live, ["warming up"])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing, and clear the display."""
        if self._live is not None:
            self._live.stop()

    def show(self, measurement: Measurement) -> None:
        """Draw a measurement unless the last drawing was less than `_EVERY_NS` ago."""
        if self._live is None or (now_ns := self._now_ns()) < self._next_ns:
            return
        self._next_ns = now_ns + _EVERY_NS
        options = self._live.console.options
        latest = measurement.latest_intervals(now_ns, options.max_width)
        lasting_s = (now_ns - measurement.began_ns) / _NS_PER_S
        lines = [self._progress_text(measurement, latest, lasting_s)]
        if self._has_charts and latest:
            heights = ASCII_HEIGHTS if options.ascii_only else HEIGHTS
            rates = [interval.records_per_s for interval in latest]
            for name, values in (("records/s", rates), ("p99 ms", self._update_p99s_ms(latest))):
                lines.append(chart_line(name, values, options.max_width, heights))
        self._draw(self._live, lines)

    def _draw(self, live: Live, lines: Sequence[str]) -> None:
        """Replace the drawing on the terminal by these lines."""
        from rich.text import Text

        live.update(Text("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)

    def _progress_text(
        self, measurement: Measurement, intervals: Sequence[Interval], lasting_s: float
    ) -> str:
        """Return the progress line; without charts it includes the last interval's rate and p99."""
        parts = [f"{measurement.records:,} of {self._record_count:,} records"]
        parts += share_and_left(measurement.records, self._record_count, lasting_s)
        if not intervals:
            return ", ".join(parts)
        last = intervals[-1]
        if not self._has_charts:
            parts.append(f"{_figure(last.records_per_s)}/s")
        parts.append(f"{size_text(last.bytes_per_s or 0)}/s")
        if not self._has_charts and (p99_ms := _p99_ms(last)) is not None:
            parts.append(f"p99 {_figure(p99_ms)} ms")
        return ", ".join(parts)

    def _update_p99s_ms(self, intervals: Sequence[Interval]) -> list[float | None]:
        """Return the p99 latency of each interval in ms; those of the last drawing are reused.

        Only intervals that became visible since then are computed; values of others are dropped.
        """
        known = self._p99s_ms
        self._p99s_ms = {
            one.start_s: known[one.start_s] if one.start_s in known else _p99_ms(one)
            for one in intervals
        }
        return list(self._p99s_ms.values())


def chart_line(
    name: str, values: Sequence[float | None], width: int, heights: str = HEIGHTS
) -> str:
    """Return a name, a chart of the last values and, if `width` allows, last value and maximum."""
    room = width - _NAME_COLUMNS
    has_figures = room >= _CHART_COLUMNS_MIN + _FIGURE_COLUMNS
    if has_figures:
        room -= _FIGURE_COLUMNS
    shown = values[-room:] if room > 0 else ()
    line = f"{name:<{_NAME_COLUMNS}}{sparkline(shown, heights)}"
    most = max(filter(is_known, shown), default=None)
    if not has_figures or most is None:
        return line
    return f"{line} {_figure(shown[-1])}, at most {_figure(most)}"


def _p99_ms(interval: Interval) -> float | None:
    """Return the 99th percentile of an interval's latencies in ms, None without records."""
    p99_us = interval.latencies.percentile_us(99)
    return None if p99_us is None else p99_us / 1000


def _figure(value: float | None) -> str:
    """Return a number as text, with no decimals or three digits; `-` for an unknown value."""
    if not is_known(value):
        return "-"
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.3g}"
