"""The one timer behind everything that waits with a deadline.

```
 an operation starts to wait ── earlier than the timer? ──> timer moved forward
 timer ──> advance: answer what is past its deadline ──> timer set to the next deadline
```

Source: PUR-11, SCH-14; Kafka's ExpiredOperationReaper.
Differs: no thread polls; with nothing waiting no timer runs.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.host.ports import Timers


class Deadlines:
    """Keeps one timer at the earliest deadline of a purgatory's owner."""

    def __init__(
        self,
        timers: Timers,
        advance: Callable[[], None],
        next_deadline_ms: Callable[[], int | None],
    ) -> None:
        self._timers = timers
        self._advance = advance
        self._next_deadline_ms = next_deadline_ms
        self._due_ms: int | None = None
        self._cancel: Callable[[], None] = lambda: None

    def note(self, deadline_ms: int) -> None:
        """Take note of an operation that started to wait (monotonic)."""
        if self._due_ms is None or deadline_ms < self._due_ms:
            self._cancel()
            self._set(deadline_ms)

    def _set(self, due_ms: int) -> None:
        self._due_ms = due_ms
        self._cancel = self._timers.call_at(due_ms, self._run)

    def _run(self) -> None:
        self._due_ms = None
        self._cancel = lambda: None
        self._advance()
        due_ms = self._next_deadline_ms()
        if due_ms is not None:
            self.note(due_ms)

    def stop(self) -> None:
        """Cancel the timer."""
        self._cancel()
        self._due_ms = None
