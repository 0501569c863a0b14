"""Operations that wait for an event or their deadline, whichever comes first.

```
 try ── can complete ──────────────────────────────> completed
  │ cannot                                               ^
  v                                                      │
 watched under each of its keys ── check(key), can ──────┤
  │                                                      │
  v                                                      │
 timer armed ── advance(now) past the deadline ──────────┘ (expired)
```

1. Try to complete; most operations can at once and cost nothing more.
2. Watch under all keys.
3. Try again: an event between 1 and 2 found nobody watching, and may have been the last one.
4. Arm the timer.

An operation completes exactly once (P1): the first `force_complete` wins, and whoever got True
owes the response. Purgatories only say which operations are complete; the responses, which read
logs and write to sockets, are built by the caller from what the operation hands out.

Completing through one key leaves dead entries under the others. They are not looked for at
once; when there may be more than the purge interval of them, all lists are swept (PUR-3).

Source: PUR-1 ... PUR-3; Kafka's DelayedOperation and DelayedOperationPurgatory.
Differs: the sweep is also started by watching and not only by a thread every 200 ms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from engine.timing.wheel import Timer, TimingWheel


class DelayedOperation(Timer, ABC):
    """An operation that waits.

    Subclasses say when it can complete, and hold what its response is built from.
    """

    __slots__ = ("is_completed", "is_expired")

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        #: Someone completed it; the response is out or on its way.
        self.is_completed = False
        #: It was completed by its deadline and not by an event.
        self.is_expired = False

    @abstractmethod
    def can_complete(self) -> bool:
        """Tell whether what it waits for is there. Called any number of times until it is."""

    def look(self, key: object) -> bool:
        """Tell the same after an event under one of its keys; for those to whom that says more."""
        return self.can_complete()

    def force_complete(self) -> bool:
        """Complete, whatever it waits for; True for exactly one caller, who owes the response."""
        if self.is_completed:
            return False
        self.is_completed = True
        self.cancel()
        return True


Op = TypeVar("Op", bound=DelayedOperation)


class Purgatory(Generic[Op]):
    """Waiting operations of one kind, found by the keys of the events they wait for."""

    __slots__ = ("_purge_interval", "_watched_estimate", "_watchers", "_wheel")

    def __init__(self, wheel: TimingWheel[Op], *, purge_interval: int) -> None:
        self._wheel = wheel
        self._purge_interval = purge_interval
        self._watchers: dict[Hashable, dict[Op, None]] = {}
        # Operations watched since the last sweep, and those it left.
        self._watched_estimate = 0

    @property
    def delayed_count(self) -> int:
        """Count the operations that wait."""
        return self._wheel.pending_count

    @property
    def watched_count(self) -> int:
        """Count the entries under all keys, dead ones among them."""
        return sum(map(len, self._watchers.values()))

    @property
    def key_count(self) -> int:
        """Count the keys that have entries."""
        return len(self._watchers)

    @property
    def watched_keys(self) -> Mapping[Hashable, object]:
        """Return the keys that have entries, as they are at any time."""
        return self._watchers

    def try_complete_else_watch(self, operation: Op, keys: Iterable[Hashable]) -> bool:
        """Complete an operation now, or let it wait; True if completed, and the response is owed.

        False also if someone else completed it meanwhile: the response is theirs.

        Source: PUR-2.
        """
        if operation.can_complete():
            return operation.force_complete()
        watched = False
        for key in keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                watchers = self._watchers[key] = {}
            watchers[operation] = None
            watched = True
        self._watched_estimate += watched
        # An event since the first try found nobody watching.
        if operation.can_complete():
            return operation.force_complete()
        # The second look itself may have led to a check that completed it.
        if not operation.is_completed:
            self._wheel.insert(operation)
        if self._watched_estimate > self._purge_interval:
            self._maybe_purge()
        return False

    def watch(self, operation: Op, keys: Iterable[Hashable]) -> None:
        """Let an operation wait that its owner has just looked at: it cannot complete yet.

        The look must have led to no event; then nothing has happened since.
        """
        for key in keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                self._watchers[key] = {operation: None}
            else:
                watchers[operation] = None
        self._watched_estimate += 1
        self._wheel.insert(operation)
        if self._watched_estimate > self._purge_interval:
            self._maybe_purge()

    def check(self, key: Hashable) -> list[Op]:
        """Return the operations under a key that an event completed; their responses are owed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return []
        completed = []
        # A copy: a look may lead to watching, and to checks, of the same key.
        for operation in tuple(watchers):
            if operation.is_completed:
                watchers.pop(operation, None)
            elif operation.look(key):
                watchers.pop(operation, None)
                if operation.force_complete():
                    completed.append(operation)
        self._drop_if_empty(key, watchers)
        return completed

    def advance(self, now_ms: int) -> list[Op]:
        """Complete the operations past their deadline, earliest first; their responses are owed."""
        expired = []
        for operation in self._wheel.advance(now_ms):
            if operation.force_complete():
                operation.is_expired = True
                expired.append(operation)
        if self._watched_estimate > self._purge_interval:
            self._maybe_purge()
        return expired

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next, or None if nothing waits."""
        return self._wheel.next_deadline_ms()

    def drain(self) -> list[Op]:
        """Complete everything that waits, for a stop; the responses are owed."""
        self._watchers.clear()
        self._watched_estimate = 0
        return [operation for operation in self._wheel.drain() if operation.force_complete()]

    def _maybe_purge(self) -> None:
        waiting = self._wheel.pending_count
        if self._watched_estimate - waiting <= self._purge_interval:
            return
        self._watched_estimate = waiting
        for key, watchers in tuple(self._watchers.items()):
            for operation in tuple(watchers):
                if operation.is_completed:
                    del watchers[operation]
            self._drop_if_empty(key, watchers)

    def _drop_if_empty(self, key: Hashable, watchers: dict[Op, None]) -> None:
        # A nested check may have dropped this list and a watch begun another.
        if not watchers and self._watchers.get(key) is watchers:
            del self._watchers[key]
