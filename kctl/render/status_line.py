"""A status line on stderr for long work: on a terminal only, cleared before any other text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from engine.host.ports import Clock

#: Work that is over sooner needs no line.
_SHOWN_FROM_MS = 2_000
#: Often enough to show that the work continues.
_EVERY_MS = 250
_CLEARED = "\r\x1b[K"


class StatusLine:
    """Written over itself a few times a second; silent unless stderr is a terminal."""

    def __init__(self, clock: Clock, stream: TextIO | None = None) -> None:
        """`stream` is stderr by default; nothing is shown during the first moments."""
        self._clock = clock
        self._stream = stream if stream is not None else sys.stderr
        #: Whether the line is on the screen, and has to be cleared before other output.
        self._is_shown = False
        self._began_ms = clock.monotonic_ms()
        #: When the line may be written next (monotonic).
        self._next_ms = self._began_ms + _SHOWN_FROM_MS
        # A closed stderr is None, and no terminal.
        self._is_watched = self._stream is not None and self._stream.isatty()

    def show(self, text: Callable[[float], str]) -> None:
        """Show a text if it is time for one; it is made of the seconds that the work lasts."""
        if not self._is_watched:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _EVERY_MS
        self._is_shown = True
        self._stream.write(_CLEARED + text((now_ms - self._began_ms) / 1000))
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line, before another text is printed or when the work is done."""
        if self._is_shown:
            self._is_shown = False
            self._stream.write(_CLEARED)
            self._stream.flush()


def share_and_left(done: int, total: int | None, lasting_s: float) -> list[str]:
    """Return the share done and the estimated time left; none where that is not known."""
    if not total or not 0 < done <= total:
        return []
    left_s = lasting_s * (total - done) / done
    return [f"{100 * done // total} %", f"{left_s:,.0f} s left"]
