"""A progress bar on stderr, on a terminal only; it is removed at the end."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """Shows the progress of long work; does nothing where stderr is not a terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._drawn: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> ProgressBar:
        """Start drawing, if stderr is a terminal."""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            progress = Progress(console=Console(stderr=True), transient=True)
            progress.start()
            self._drawn = progress, progress.add_task(self._title, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing and remove the bar."""
        self.stop()

    def stop(self) -> None:
        """Stop drawing and remove the bar; later updates have no effect."""
        if self._drawn is not None:
            progress, _ = self._drawn
            progress.stop()
            self._drawn = None

    def show(self, text: str) -> None:
        """Show a text, such as the current step, in place of the title."""
        if self._drawn is not None:
            progress, task = self._drawn
            progress.update(task, description=text)

    def update(self, done: int, of: int, text: str | None = None) -> None:
        """Show that `done` of `of` pieces are done, with the title or another text."""
        if self._drawn is not None:
            progress, task = self._drawn
            shown = self._title if text is None else text
            progress.update(task, description=shown, completed=done, total=max(of, 1))
