"""The progress of records as one line on stderr, on a terminal only and only for long work.

```
1,234,000 records, 118.2 MB, 410,000 records/s, 61 %, 12 s left
```
"""

from __future__ import annotations

from typing import TextIO

from engine.host.ports import Clock
from kctl.render.status_line import StatusLine, share_and_left


class RateLine:
    """Shows count and rate; with a total of bytes or records also share and remaining time."""

    def __init__(
        self,
        clock: Clock,
        *,
        total_bytes: int | None = None,
        total_count: int | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """Create a progress line; a total, if known, adds share and remaining time.

        `stream` is stderr by default. Nothing is shown unless it is a terminal.
        """
        self._line = StatusLine(clock, stream)
        self._total_bytes = total_bytes
        self._total_count = total_count

    def update(self, count: int, done_bytes: int) -> None:
        """Show the numbers of records and bytes that are done."""
        self._line.show(lambda lasting_s: self._progress_text(count, done_bytes, lasting_s))

    def clear(self) -> None:
        """Remove the line, before other output and at the end."""
        self._line.clear()

    def _progress_text(self, count: int, done_bytes: int, lasting_s: float) -> str:
        """Return the line after `lasting_s`: records, bytes, rate, share and remaining time."""
        parts = [f"{count:,} records", f"{done_bytes / 1e6:,.1f} MB"]
        parts.append(f"{count / lasting_s:,.0f} records/s")
        parts += share_and_left(done_bytes, self._total_bytes, lasting_s)
        parts += share_and_left(count, self._total_count, lasting_s)
        return ", ".join(parts)
