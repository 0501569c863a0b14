"""A status line on stderr for long work, on a terminal only; cleared before other output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from engine.host.ports import Clock

#: Shorter work shows no line.
_SHOWN_FROM_MS = 2_000
#: Time between two updates.
_EVERY_MS = 250
_CLEARED = "\r\x1b[K"


class StatusLine:
    """A line that is overwritten a few times a second; does nothing if stderr is no terminal."""

    def __init__(self, clock: Clock, stream: TextIO | None = None) -> None:
        """Create a line of progress that replaces itself; it is shown on a terminal only.

        `stream` is stderr by default. Nothing is shown before `_SHOWN_FROM_MS`, so that quick work
        shows none.
        """
        self._clock = clock
        self._stream = stream if stream is not None else sys.stderr
        #: True while the line is on the screen and has to be cleared before other output.
        self._is_shown = False
        self._began_ms = clock.monotonic_ms()
        #: Monotonic time of the next update.
        self._next_ms = self._began_ms + _SHOWN_FROM_MS
        # A closed stderr is None.
        self._is_watched = self._stream is not None and self._stream.isatty()

    def show(self, text: Callable[[float], str]) -> None:
        """Show a text, at most every `_EVERY_MS`.

        `text` returns it for the elapsed seconds, and is called only if it is shown.
        """
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
        """Remove the line, before other output and at the end."""
        if self._is_shown:
            self._is_shown = False
            self._stream.write(_CLEARED)
            self._stream.flush()


def share_and_left(done: int, total: int | None, lasting_s: float) -> list[str]:
    """Return `40 %` and `12 s left` for work of which `done` is done after `lasting_s`.

    Empty if the total is not known.
    """
    if not total or not 0 < done <= total:
        return []
    left_s = lasting_s * (total - done) / done
    return [f"{100 * done // total} %", f"{left_s:,.0f} s left"]
