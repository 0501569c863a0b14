"""Progress of long reads: rate and time left, from two seconds on, on a terminal."""

from __future__ import annotations

import io

from engine.host.memory import ManualClock
from kctl.commands.logs.progress import Progress

MB = 1_000_000


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        return True


def test_short_work_is_not_shown() -> None:
    clock, terminal = ManualClock(), Terminal()
    with Progress(10 * MB, "verifying", clock=clock, stream=terminal) as progress:
        clock.advance(1999)
        progress.advance(9 * MB)
    assert terminal.getvalue() == ""


def test_long_work_is_shown_with_its_rate_and_time_left() -> None:
    clock, terminal = ManualClock(), Terminal()
    with Progress(100 * MB, "verifying", clock=clock, stream=terminal) as progress:
        clock.advance(2000)
        progress.advance(20 * MB)
        clock.advance(100)
        progress.advance(MB)
        assert terminal.getvalue() == (
            "\r\x1b[Kverifying: 20.0 MB of 100.0 MB, 10.0 MB/s, 20 %, 8 s left"
        )
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_is_more_than_was_expected_has_no_time_left() -> None:
    clock, terminal = ManualClock(), Terminal()
    with Progress(MB, "reading", clock=clock, stream=terminal) as progress:
        clock.advance(4000)
        progress.advance(8 * MB)
        assert terminal.getvalue() == "\r\x1b[Kreading: 8.0 MB of 1.0 MB, 2.0 MB/s"


def test_a_pipe_is_left_alone() -> None:
    clock, pipe = ManualClock(), io.StringIO()
    with Progress(MB, "verifying", clock=clock, stream=pipe) as progress:
        clock.advance(9000)
        progress.advance(MB)
    assert pipe.getvalue() == ""
