"""A progress line of long reads on stderr, shown after two seconds and only on a terminal.

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
    """Shows the bytes read on one line; silent if stderr is no terminal or the work is short."""

    def __init__(
        self,
        total_bytes: int,
        label: str,
        *,
        clock: Clock | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """Create a progress line for reading `total_bytes`, shown once bytes are read.

        `label` starts the line, `stream` None means stderr.
        """
        self._total_bytes = total_bytes
        self._label = label
        self._line = StatusLine(clock or RealClock(), stream)
        self._done_bytes = 0

    def __enter__(self) -> Self:
        """Return this progress line; it is shown from the first `advance` on."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Clear the line, whether the block ends normally or by an error."""
        self._line.clear()

    def advance(self, read_bytes: int) -> None:
        """Count bytes as read, and update the line."""
        self._done_bytes += read_bytes
        self._line.show(self._progress_text)

    def clear(self) -> None:
        """Clear the line, so that other text can be printed."""
        self._line.clear()

    def _progress_text(self, lasting_s: float) -> str:
        """Return the line's text: bytes read and in total, rate, share, remaining time.

        `lasting_s` is the time since the line was first shown.
        """
        done, total = self._done_bytes, self._total_bytes
        parts = [
            f"{self._label}: {done / 1e6:,.1f} MB of {total / 1e6:,.1f} MB",
            f"{done / 1e6 / lasting_s:,.1f} MB/s",
            *share_and_left(done, total, lasting_s),
        ]
        return ", ".join(parts)
