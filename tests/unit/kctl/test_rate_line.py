from __future__ import annotations

import io

from kctl.render.rate_line import RateLine
from tests.client_session import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(line: RateLine, clock: FakeClock, *steps: tuple[int, int, int]) -> None:
    for passed_ms, count, done_bytes in steps:
        clock.now_ms += passed_ms
        line.update(count, done_bytes)


def test_work_of_less_than_two_seconds_shows_nothing() -> None:
    clock, stream = FakeClock(), Terminal()
    line = RateLine(clock, stream=stream)
    shown(line, clock, (1_000, 5, 50), (999, 10, 100))
    line.clear()
    assert "" == stream.getvalue()


def test_longer_work_shows_its_rate_and_what_is_left() -> None:
    clock, stream = FakeClock(), Terminal()
    line = RateLine(clock, total_bytes=8_000_000, stream=stream)
    shown(line, clock, (2_000, 5_000, 2_000_000), (100, 5_100, 2_100_000))
    assert "\r\x1b[K5,000 records, 2.0 MB, 2,500 records/s, 25 %, 6 s left" == stream.getvalue()


def test_the_line_is_gone_before_something_else_is_said() -> None:
    clock, stream = FakeClock(), Terminal()
    line = RateLine(clock, stream=stream)
    shown(line, clock, (2_000, 1, 1))
    line.clear()
    line.clear()
    assert stream.getvalue().endswith("records/s\r\x1b[K")


def test_nothing_is_shown_where_nobody_looks() -> None:
    clock, stream = FakeClock(), io.StringIO()
    line = RateLine(clock, stream=stream)
    shown(line, clock, (9_000, 1, 1))
    line.clear()
    assert "" == stream.getvalue()
