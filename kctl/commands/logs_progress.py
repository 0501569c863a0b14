"""Progress of long reads on stderr: only where a person is looking."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

#: Reading less than this is over before a bar would be understood.
_SHOWN_FROM_BYTES = 256 << 20


class Progress:
    """A bar over bytes read, or nothing where stderr is no terminal or there is little to read."""

    def __init__(self, total_bytes: int, label: str) -> None:
        self._total_bytes = total_bytes
        self._label = label
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._total_bytes >= _SHOWN_FROM_BYTES and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.DownloadColumn(binary_units=True),
                progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._label, total=self._total_bytes)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, read_bytes: int) -> None:
        """Count bytes that were read."""
        if self._bar is not None:
            self._bar.advance(self._task, read_bytes)
