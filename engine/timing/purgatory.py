"""Operations that wait for an event or their deadline, whichever comes first.

```
 try ── can complete ──────────────────────────────> completed
  │ cannot                                               ^
  v                                                      │
 watched under each of its keys ── check(key), can ──────┤
 with its timer armed ── advance(now), past its deadline ┘ (expired)
```

1. Try to complete; most operations can at once and cost nothing more.
2. Watch under all keys, and arm the timer.
3. Try again: an event between 1 and 2 found nobody watching, and may have been the last one.

An operation completes exactly once (P1): the first `force_complete` wins, and the one who got True
owes the response. Purgatories only say which operations are complete; the responses, which read
logs and write to sockets, are built by the caller from what the operation hands out.

Completing through one key, or by the deadline, leaves dead entries under the others. They are not
looked for at once; when there may be more than the purge interval of them, all lists are swept
(PUR-3). A dead entry is small: the objects that its operation held were dropped when it completed.

Source: PUR-1 ... PUR-3; Kafka's DelayedOperation and DelayedOperationPurgatory.
Differs: the sweep is also started by watching and not only by a thread every 200 ms. Entries are
counted and not operations, for a follower's fetch has one under each of a thousand keys: Kafka's
count lets a million of them lie. Where more entries than the interval wait, as many may be dead,
so that a sweep never costs more than the watching that led to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from engine.timing.wheel import Timer, TimingWheel


class DelayedOperation(Timer, ABC):
    """An operation that waits.

    Subclasses say when it can complete, and hold what its response is built from, until `drop`.
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
        """Return whether what it waits for is there. Called any number of times until it is."""

    def can_complete_after(self, key: object) -> bool:
        """Return whether it can complete after an event under one of its keys."""
        return self.can_complete()

    def force_complete(self) -> bool:
        """Complete, ready or not; True for exactly one caller, who must send the response."""
        if self.is_completed:
            return False
        self.is_completed = True
        self.cancel()
        return True

    @abstractmethod
    def drop(self) -> None:
        """Release the data of the response, once it is sent or no longer wanted.

        The caller that completed the operation calls this: the operation may stay listed under its
        keys for long after that.
        """

    def abandon(self) -> bool:
        """Complete without a response, because nobody waits for one; False if completed already.

        A response that is due by then is sent all the same.
        """
        if not self.force_complete():
            return False
        self.drop()
        return True


Op = TypeVar("Op", bound=DelayedOperation)


class PurgatoryCount(NamedTuple):
    """Counts of waiting operations, and of entries, dead ones included."""

    delayed_count: int
    watched_count: int


#: In place of an entry that is not there.
_GONE = False


class Purgatory(Generic[Op]):
    """Waiting operations of one kind, found by the keys of the events they wait for."""

    __slots__ = ("_entry_count", "_purge_interval", "_sweep_above", "_watchers", "_wheel")

    def __init__(self, wheel: TimingWheel[Op], *, purge_interval: int) -> None:
        """Entries of completed operations are removed when `purge_interval` more have come."""
        self._wheel = wheel
        self._purge_interval = purge_interval
        #: Operations under each key, in the order in which they came.
        self._watchers: dict[Hashable, dict[Op, None]] = {}
        #: Entries under all keys, and the number above which completed operations are removed.
        self._entry_count = 0
        self._sweep_above = purge_interval

    @property
    def delayed_count(self) -> int:
        """Count the operations that wait."""
        return self._wheel.pending_count

    @property
    def watched_count(self) -> int:
        """Count the entries under all keys, dead ones among them."""
        return sum(map(len, self._watchers.values()))

    @property
    def count(self) -> PurgatoryCount:
        """Count what waits and what is listed."""
        return PurgatoryCount(self.delayed_count, self.watched_count)

    def counts_by(self, kind_of: Callable[[Hashable], str]) -> dict[str, PurgatoryCount]:
        """Count waiting operations and watched entries, by the kind of their keys.

        Each operation must wait under one key.
        """
        delayed: Counter[str] = Counter()
        watched: Counter[str] = Counter()
        for key, watchers in self._watchers.items():
            kind = kind_of(key)
            watched[kind] += len(watchers)
            delayed[kind] += sum(not operation.is_completed for operation in watchers)
        return {kind: PurgatoryCount(delayed[kind], watched[kind]) for kind in watched}

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
        self.watch(operation, keys)
        # An event since the first try found nobody watching.
        return operation.can_complete() and operation.force_complete()

    def watch(self, operation: Op, keys: Iterable[Hashable]) -> None:
        """Let an operation wait that its owner has just checked: it cannot complete yet.

        The look must have led to no event; then nothing has happened since.
        """
        count = 0
        for key in keys:
            watchers = self._watchers.get(key)
            if watchers is None:
                self._watchers[key] = {operation: None}
            else:
                watchers[operation] = None
            count += 1
        self._entry_count += count
        self._wheel.insert(operation)
        if self._entry_count > self._sweep_above:
            self._sweep()

    def check(self, key: Hashable) -> list[Op]:
        """Return the operations that an event of a key completed; the caller sends their responses.

        A fault in one operation is raised with none of them completed: the next event can complete
        them.
        """
        watchers = self._watchers.get(key)
        if watchers is None:
            return []
        over: list[Op] = []
        # A copy: a look may lead to watching, and to checks, of the same key.
        for operation in tuple(watchers):
            if operation.is_completed or operation.can_complete_after(key):
                over.append(operation)
        if not over:
            return over
        for operation in over:
            self._strike(watchers, operation)
        self._drop_if_empty(key, watchers)
        return [operation for operation in over if operation.force_complete()]

    def advance(self, now_ms: int) -> list[Op]:
        """Complete the operations past their deadline, earliest first.

        The caller sends their responses.
        """
        expired = []
        for operation in self._wheel.advance(now_ms):
            if operation.force_complete():
                operation.is_expired = True
                expired.append(operation)
        if self._entry_count > self._sweep_above:
            self._sweep()
        return expired

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next, or None if nothing waits."""
        return self._wheel.next_deadline_ms()

    def drain(self) -> list[Op]:
        """Complete everything that waits, for a stop; the responses are owed."""
        self._watchers.clear()
        self._entry_count, self._sweep_above = 0, self._purge_interval
        return [operation for operation in self._wheel.drain() if operation.force_complete()]

    def _strike(self, watchers: dict[Op, None], operation: Op) -> None:
        """Remove an operation from one list of watchers, and count it off once."""
        # A nested check may have been here before.
        if watchers.pop(operation, _GONE) is None:
            self._entry_count -= 1

    def _sweep(self) -> None:
        """Remove all dead entries."""
        left = 0
        for key, watchers in tuple(self._watchers.items()):
            for operation in [listed for listed in watchers if listed.is_completed]:
                del watchers[operation]
            left += len(watchers)
            self._drop_if_empty(key, watchers)
        self._entry_count = left
        self._sweep_above = left + max(left, self._purge_interval)

    def _drop_if_empty(self, key: Hashable, watchers: dict[Op, None]) -> None:
        """Drop a list of watchers that is empty, if it is still the list of the key."""
        # A nested check may have dropped this list and a watch begun another.
        if not watchers and self._watchers.get(key) is watchers:
            del self._watchers[key]
