"""Progress of long reads on stderr: from two seconds on, only where a person is looking.

```
verifying: 1,234.5 MB of 9,876.0 MB, 410.2 MB/s, 12 %, 21 s left
```
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from engine.host.ports import Clock
from engine.host.real import RealClock

#: Work that is over sooner needs no line.
_SHOWN_FROM_MS = 2_000
#: Often enough to look alive.
_EVERY_MS = 250
_CLEARED = "\r\x1b[K"


class Progress:
    """A line over bytes read, or nothing where stderr is no terminal or the work is soon done."""

    def __init__(
        self,
        total_bytes: int,
        label: str,
        *,
        clock: Clock | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self._total_bytes = total_bytes
        self._label = label
        self._clock = clock or RealClock()
        self._stream = stream if stream is not None else sys.stderr
        # A closed stderr is None, and has nobody who looks.
        self._is_watched = self._stream is not None and self._stream.isatty()
        self._began_ms = self._clock.monotonic_ms()
        self._next_ms = self._began_ms + _SHOWN_FROM_MS
        self._done_bytes = 0
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def advance(self, read_bytes: int) -> None:
        """Count bytes that were read."""
        self._done_bytes += read_bytes
        if not self._is_watched:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _EVERY_MS
        self._is_shown = True
        self._stream.write(_CLEARED + self._text((now_ms - self._began_ms) / 1000))
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away, so that something else can be said or the work is done."""
        if self._is_shown:
            self._is_shown = False
            self._stream.write(_CLEARED)
            self._stream.flush()

    def _text(self, lasting_s: float) -> str:
        done, total = self._done_bytes, self._total_bytes
        parts = [
            f"{self._label}: {done / 1e6:,.1f} MB of {total / 1e6:,.1f} MB",
            f"{done / 1e6 / lasting_s:,.1f} MB/s",
        ]
        if 0 < done <= total:
            left_s = lasting_s * (total - done) / done
            parts += [f"{100 * done // total} %", f"{left_s:,.0f} s left"]
        return ", ".join(parts)
