"""The one timer of all operations of a broker that wait with a deadline.

```
 an operation starts to wait ── earlier than the timer? ──> timer moved forward
 timer ──> advance: complete expired operations ────> timer set to the next deadline
```

Operations wait in purgatories; their owners (produces, fetches and deletions of records; requests
for topics) call `note` and are advanced together.

Source: PUR-11, SCH-14; Kafka's ExpiredOperationReaper.
Differs: no thread polls; with nothing waiting no timer runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.host.each import do_each
from engine.host.ports import Timers


class PurgatoryOwner(Protocol):
    """The owner of purgatories."""

    def advance(self) -> None:
        """Complete the operations past their deadline."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next (monotonic), None if nothing waits."""
        ...


class Deadlines:
    """Keeps one timer at the earliest deadline of the owners that were added."""

    def __init__(self, timers: Timers) -> None:
        """Begin without owners; `add` adds purgatories."""
        self._timers = timers
        self._owners: list[PurgatoryOwner] = []
        #: When the timer is set for (monotonic), and how to cancel it. None: no operation waits.
        self._due_ms: int | None = None
        self._cancel: Callable[[], None] | None = None
        self._is_stopped = False

    def add(self, owner: PurgatoryOwner) -> None:
        """Advance an owner of purgatories, too."""
        self._owners.append(owner)

    def note(self, deadline_ms: int) -> None:
        """Note the deadline (monotonic) of an operation that started to wait."""
        if self._is_stopped:
            return
        if self._due_ms is None or deadline_ms < self._due_ms:
            if self._cancel is not None:
                self._cancel()
            self._due_ms = deadline_ms
            self._cancel = self._timers.call_at(deadline_ms, self._advance_owners)

    def _advance_owners(self) -> None:
        """Advance all owners, and set the timer to their next deadline."""
        self._due_ms = self._cancel = None
        try:
            do_each(self._owners, lambda owner: owner.advance())
        finally:
            # A fault in one answer leaves no other waiting beyond its deadline.
            for owner in self._owners:
                due_ms = owner.next_deadline_ms()
                if due_ms is not None:
                    self.note(due_ms)

    def stop(self) -> None:
        """Cancel the timer; nothing is advanced any more."""
        self._is_stopped = True
        if self._cancel is not None:
            self._cancel()
        self._due_ms = self._cancel = None
