"""The single timer for the deadlines of all delayed operations of a broker.

```
 an operation starts to wait ── due before the timer? ──> timer set to its deadline
 timer ──> advance: complete expired operations ────> timer set to the next deadline
```

Operations wait in purgatories; the owners of purgatories call `note` and are advanced together.

Source: PUR-11, SCH-14; Kafka's ExpiredOperationReaper.
Differs: no thread polls; if no operation waits, no timer runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.host.each import do_each
from engine.host.ports import Timers


class PurgatoryOwner(Protocol):
    """The owner of purgatories."""

    def advance(self) -> None:
        """Complete the operations whose deadline has passed."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline (monotonic) of the operations, None without any."""
        ...


class Deadlines:
    """Keeps one timer at the earliest deadline of the owners that were added."""

    def __init__(self, timers: Timers) -> None:
        """Create the one timer for the deadlines of all purgatories; no purgatory is known yet."""
        self._timers = timers
        self._owners: list[PurgatoryOwner] = []
        #: Monotonic time of the timer, and the function that cancels it. None if no operation
        #: waits.
        self._due_ms: int | None = None
        self._cancel: Callable[[], None] | None = None
        self._is_stopped = False

    def add(self, owner: PurgatoryOwner) -> None:
        """Add an owner of purgatories, whose deadlines the timer serves from now on."""
        self._owners.append(owner)

    def note(self, deadline_ms: int) -> None:
        """Note that an operation with this deadline waits.

        The timer is set to it unless it is earlier. The deadline is monotonic.
        """
        if self._is_stopped:
            return
        if self._due_ms is None or deadline_ms < self._due_ms:
            if self._cancel is not None:
                self._cancel()
            self._due_ms = deadline_ms
            self._cancel = self._timers.call_at(deadline_ms, self._advance_owners)

    def _advance_owners(self) -> None:
        """Complete the operations that are due in all purgatories.

        The timer is set to the next deadline.
        """
        self._due_ms = self._cancel = None
        try:
            do_each(self._owners, lambda owner: owner.advance())
        finally:
            # The timer is set even after an exception, so that other operations complete.
            for owner in self._owners:
                due_ms = owner.next_deadline_ms()
                if due_ms is not None:
                    self.note(due_ms)

    def stop(self) -> None:
        """Cancel the timer, and ignore later deadlines."""
        self._is_stopped = True
        if self._cancel is not None:
            self._cancel()
        self._due_ms = self._cancel = None
