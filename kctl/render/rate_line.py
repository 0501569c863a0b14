"""How far records are, as one line on stderr: on a terminal only, and only of work that lasts.

```
1,234,000 records, 118.2 MB, 410,000 records/s, 61 %, 12 s left
```

It is written over itself, and gone before anything else is said.
"""

from __future__ import annotations

import sys
from typing import TextIO

from engine.host.ports import Clock

#: Work that is over sooner needs no line.
_SHOWN_FROM_MS = 2_000
#: Often enough to look alive.
_EVERY_MS = 250
_CLEARED = "\r\x1b[K"


class RateLine:
    """Shows a count that grows; `total_bytes` (None: unknown) gives a share and the time left."""

    def __init__(
        self, clock: Clock, *, total_bytes: int | None = None, stream: TextIO | None = None
    ) -> None:
        self._clock = clock
        self._total_bytes = total_bytes
        self._stream = stream if stream is not None else sys.stderr
        self._is_shown = False
        self._began_ms = clock.monotonic_ms()
        self._next_ms = self._began_ms + _SHOWN_FROM_MS
        # A closed stderr is None, and has nobody who looks.
        self._is_watched = self._stream is not None and self._stream.isatty()

    def update(self, count: int, done_bytes: int) -> None:
        """Show how many records there are by now, and how many bytes of the work are done."""
        if not self._is_watched:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _EVERY_MS
        self._is_shown = True
        lasting_s = (now_ms - self._began_ms) / 1000
        self._stream.write(_CLEARED + self._text(count, done_bytes, lasting_s))
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away, so that something else can be said or the work is done."""
        if self._is_shown:
            self._is_shown = False
            self._stream.write(_CLEARED)
            self._stream.flush()

    def _text(self, count: int, done_bytes: int, lasting_s: float) -> str:
        parts = [f"{count:,} records", f"{done_bytes / 1e6:,.1f} MB"]
        parts.append(f"{count / lasting_s:,.0f} records/s")
        total = self._total_bytes
        if total and 0 < done_bytes <= total:
            left_s = lasting_s * (total - done_bytes) / done_bytes
            parts += [f"{100 * done_bytes // total} %", f"{left_s:,.0f} s left"]
        return ", ".join(parts)
