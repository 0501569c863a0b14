"""The live charts of `kctl perf`, and charts of one line."""

from __future__ import annotations

import io
import math
import re
import sys

import pytest

from engine.measuring.measurement import Measurement
from kctl.commands.perf.live_charts import RunDisplay, chart_line
from kctl.render.bars import ASCII_HEIGHTS, HEIGHTS, sparkline

S = 1_000_000_000


@pytest.mark.parametrize(
    ("values", "chart"),
    [
        ((), ""),
        ((0, 1, 2, 3, 4, 5, 6, 7), HEIGHTS),
        # From 0, not from the smallest.
        ((700, 600, 700), "█▇█"),
        ((5.0, 5.0, 5.0), "███"),
        ((0, 0.0), "▁▁"),
        # Little is more than nothing.
        ((1e-9, 0, 1e9), "▂▁█"),
        ((-3, 7), "▁█"),
        ((None, 7, math.nan, 3.5, math.inf, -math.inf), " █ ▅  "),
        ((None, math.nan), "  "),
        ((5e-324, 1.7e308), "▂█"),
    ],
)
def test_heights_are_from_nothing_to_the_largest(
    values: tuple[float | None, ...], chart: str
) -> None:
    assert chart == sparkline(values)
    plain = str.maketrans(HEIGHTS, ASCII_HEIGHTS)
    assert chart.translate(plain) == sparkline(values, ASCII_HEIGHTS)


def test_a_chart_ends_with_its_last_value_and_its_largest() -> None:
    assert "records/s █▅ 41,000, at most 82,000" == chart_line("records/s", [82_000, 41_000], 80)
    assert "p99 ms    █  -, at most 0.412" == chart_line("p99 ms", [0.4123, None], 80)
    assert "p99 ms      " == chart_line("p99 ms", [None, math.nan], 80)
    assert "p99 ms    " == chart_line("p99 ms", [], 80)


@pytest.mark.parametrize("width", [*range(1, 13), 30, 51, 52, 80, 200])
def test_a_chart_is_no_wider_than_its_terminal(width: int) -> None:
    values = [float(number) for number in range(1_000_000, 1_000_400)]
    line = chart_line("records/s", values, width)
    assert len(line) <= max(width, 10)
    # The last values are shown, the largest of those is the scale.
    shown = line[10:].partition(" ")[0]
    assert shown == sparkline(values)[-len(shown) :] or not shown
    assert (width >= 52) == ("at most 1,000,399" in line)
    assert len(shown) == max(width - (42 if width >= 52 else 10), 0)


# -- on a terminal


class Screen(io.StringIO):
    """A terminal of some encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


def drawn(
    monkeypatch: pytest.MonkeyPatch,
    stream: io.StringIO,
    *,
    columns: int = 80,
    has_charts: bool = True,
    fails: bool = False,
) -> list[str]:
    """Return what is drawn of a run of 30 of 40 records, the third second without any."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    now_ns = S
    measurement = Measurement(S, S)
    try:
        with RunDisplay(40, lambda: now_ns, has_charts=has_charts) as display:
            for at_ns, count in ((S, 10), (S + S // 8, 5), (2 * S, 15)):
                now_ns = at_ns
                measurement.count(count, count * 100, now_ns, {count * 1000: count})
                display.show(measurement)
            now_ns = 4 * S
            display.show(measurement)
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert fails
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "\n", stream.getvalue()).split("\n")


def test_a_terminal_has_charts_and_an_interval_without_records_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [line.strip("\r") for line in drawn(monkeypatch, Screen())]
    assert "warming up" in lines
    assert "10 of 40 records, 25 %" in ", ".join(lines)
    # Not drawn again so soon.
    assert not any(line.startswith("15 of") for line in lines)
    assert "30 of 40 records, 75 %, 1 s left, 0 B/s" in lines
    assert "records/s ██▁ 0, at most 15" in lines
    assert "p99 ms    ▆█  -, at most 15" in lines


def test_a_narrow_terminal_has_narrow_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, Screen(), columns=14)
    assert {"records/s ██▁", "p99 ms    ▆█ ", "30 of 40 recor"} <= {*lines}
    assert all(len(line.strip("\r")) <= 14 for line in lines)


def test_a_terminal_without_blocks_has_charts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, Screen("latin-1"))
    assert "records/s ##_ 0, at most 15" in lines
    assert "".join(lines).isascii()


def test_a_document_is_made_under_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line.strip("\r") for line in drawn(monkeypatch, Screen(), has_charts=False)]
    assert "30 of 40 records, 75 %, 1 s left, 0/s, 0 B/s" in lines
    assert not set(HEIGHTS) & set("".join(lines))


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_on_the_screen(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    stream = Screen()
    drawn(monkeypatch, stream, fails=fails)
    shown = stream.getvalue()
    # Each of the three lines is cleared, and the cursor is back.
    assert shown.endswith("\x1b[?25h\r" + "\x1b[1A\x1b[2K" * 3)
    assert sys.stderr is stream


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [""] == drawn(monkeypatch, io.StringIO())
