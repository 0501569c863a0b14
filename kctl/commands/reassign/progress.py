"""Progress of an execution on stderr: bars on a terminal, only pauses elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from engine.model import TopicPartition
from engine.reassign.change_status import ChangeStatus, ExecutionStatus
from engine.reassign.phases import AT_WORK
from kctl.console import notify
from kctl.render.table import size_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Maximum number of bars.
_BARS_MAX = 20


class MoveProgress:
    """Shows each observed status of an execution."""

    def __init__(self) -> None:
        """Create a progress display; it is drawn within its `with` block, on a terminal only."""
        #: Bars while the `with` block runs; None before it, or if stderr is no terminal.
        self._bars: Progress | None = None
        self._tasks: dict[TopicPartition | None, TaskID] = {}
        #: Last printed reason of a pause: printed again only if it changes.
        self._printed_pause: str | None = None
        #: Time in ms and copied bytes at the first observation, in total (key None) and by change;
        #: rates are computed from there.
        self._began: dict[TopicPartition | None, tuple[int, int]] = {}

    def __enter__(self) -> MoveProgress:
        """Start drawing bars if stderr is a terminal."""
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing, and clear the bars."""
        if self._bars is not None:
            self._bars.stop()

    def show(self, now: ExecutionStatus) -> None:
        """Show the progress of all changes, and a bar for each of the first running ones.

        Without a terminal, only reasons of a pause are printed.
        """
        copied = sum(change.copied_bytes for change in now.changes)
        total = sum(change.total_bytes for change in now.changes)
        self._print_pause(now)
        bars = self._bars
        if bars is None:
            return
        at_work = [change for change in now.changes if change.phase in AT_WORK][:_BARS_MAX]
        rate = self._update_rate(None, now.now_ms, copied)
        head = f"{now.ended_count} of {len(now.changes)} partitions"
        self._update_bar(bars, None, head, copied, total, _progress_text(copied, total, rate))
        keys = {change.change.name for change in at_work}
        for key in [key for key in self._tasks if key is not None and key not in keys]:
            bars.remove_task(self._tasks.pop(key))
        for change in at_work:
            self._update_change_bar(bars, change, now.now_ms)

    def _update_change_bar(self, bars: Progress, now: ChangeStatus, now_ms: int) -> None:
        """Update the bar of a change with phase, bytes and rate."""
        key = now.change.name
        rate = self._update_rate(key, now_ms, now.copied_bytes)
        state = f"{now.phase.value} {_progress_text(now.copied_bytes, now.total_bytes, rate)}"
        self._update_bar(bars, key, f"  {key}", now.copied_bytes, now.total_bytes, state)

    def _update_bar(
        self,
        bars: Progress,
        key: TopicPartition | None,
        text: str,
        done: int,
        total: int,
        state: str,
    ) -> None:
        """Update the bar of a partition, or of the total (key None); add it if it is missing.

        `done` and `total` are bytes.
        """
        if key not in self._tasks:
            self._tasks[key] = bars.add_task(text, total=max(total, 1), state=state)
        bars.update(
            self._tasks[key], description=text, completed=done, total=max(total, 1), state=state
        )

    def _update_rate(self, key: TopicPartition | None, now_ms: int, copied: int) -> float | None:
        """Return bytes per second since the first call for `key`, None within the first second.

        `key` None is the total; `copied` is the number of bytes up to now.
        """
        began_ms, began_bytes = self._began.setdefault(key, (now_ms, copied))
        passed_ms = now_ms - began_ms
        return (copied - began_bytes) * 1000 / passed_ms if passed_ms >= 1000 else None

    def _print_pause(self, now: ExecutionStatus) -> None:
        """Print why no further change starts, if the reason differs from the last one."""
        reasons = [] if now.pause is None else [f"nothing new begins: {now.pause}"]
        if now.missed:
            ids = ", ".join(map(str, now.missed))
            reasons.append(f"broker {ids} is not alive: what it is to get waits")
        reasons_text = "; ".join(reasons) or None
        if reasons_text is not None and reasons_text != self._printed_pause:
            notify(reasons_text)
        self._printed_pause = reasons_text


def _progress_text(copied: int, total: int, rate: float | None) -> str:
    """Return bytes copied, rate in bytes/s and remaining time; without a rate only bytes."""
    parts = [f"{size_text(copied)} of {size_text(total)}"]
    if rate:
        parts.append(f"{size_text(round(rate))}/s")
        parts.append(f"{(total - copied) / rate:,.0f} s left")
    return ", ".join(parts)
