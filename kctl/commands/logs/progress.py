"""Progress of long reads on stderr: after two seconds, and only on a terminal.

```
verifying: 1,234.5 MB of 9,876.0 MB, 410.2 MB/s, 12 %, 21 s left
```
"""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from engine.host.ports import Clock
from engine.host.real import RealClock
from kctl.render.status_line import StatusLine, share_and_left


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
        """`label` begins the line; `stream` is stderr by default."""
        self._total_bytes = total_bytes
        self._label = label
        self._line = StatusLine(clock or RealClock(), stream)
        self._done_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.clear()

    def advance(self, read_bytes: int) -> None:
        """Count bytes that were read."""
        self._done_bytes += read_bytes
        self._line.show(self._text)

    def clear(self) -> None:
        """Clear the line, before another text is printed or when the work is done."""
        self._line.clear()

    def _text(self, lasting_s: float) -> str:
        """Return bytes done and in all, rate, share and time left as a line."""
        done, total = self._done_bytes, self._total_bytes
        parts = [
            f"{self._label}: {done / 1e6:,.1f} MB of {total / 1e6:,.1f} MB",
            f"{done / 1e6 / lasting_s:,.1f} MB/s",
            *share_and_left(done, total, lasting_s),
        ]
        return ", ".join(parts)
