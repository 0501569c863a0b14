"""Purgatories: operations that wait for an event or their deadline, whichever comes first.

```
 try ── can complete ──────────────────────────────> completed
  │ cannot                                               ^
  v                                                      │
 watched under each of its keys ── check(key), can ──────┤
 with its timer armed ── advance(now), past its deadline ┘ (expired)
```

1. Try to complete; most operations complete at once.
2. Watch under all keys, and start the timer.
3. Try again: an event between 1 and 2 did not find the operation, and may have been the last one.

An operation completes exactly once (P1): the first `force_complete` returns True, and its caller
must send the response. Purgatories only return which operations are complete; the caller builds the
responses, which read logs and write to sockets.

An operation that completes by one key, or by its deadline, leaves dead entries under its other
keys. They are removed later: when there may be more than the purge interval of them, all lists are
swept (PUR-3). A dead entry is small, since its operation drops its data when it completes.

Source: PUR-1 ... PUR-3; Kafka's DelayedOperation and DelayedOperationPurgatory.
Differs: the sweep is also started by watching and not only by a thread every 200 ms. Entries are
counted, not operations, because a follower's fetch has one under each of a thousand keys: by
Kafka's count a million dead entries may remain. If more entries than the interval are alive, as
many may be dead, so that a sweep never costs more than the watching that led to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from engine.timing.wheel import Timer, TimingWheel


class DelayedOperation(Timer, ABC):
    """An operation that waits in a purgatory.

    Subclasses implement the condition, and keep the data of the response until `drop`.
    """

    __slots__ = ("is_completed", "is_expired")

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        #: Whether the operation is complete; the caller that completed it sends the response.
        self.is_completed = False
        #: Whether it was completed by its deadline instead of an event.
        self.is_expired = False

    @abstractmethod
    def can_complete(self) -> bool:
        """Return True if the operation's condition is met; called after its events until it is."""

    def can_complete_after(self, key: object) -> bool:
        """Return True if the operation can complete after an event of one of its keys."""
        return self.can_complete()

    def force_complete(self) -> bool:
        """Mark the operation as completed, its condition met or not.

        Return True to one caller only. That caller sends the response. False if the operation was
        completed before.
        """
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
        """Complete the operation without a response, because its client is gone.

        Returns False if the operation was complete before: its response is sent anyway.
        """
        if not self.force_complete():
            return False
        self.drop()
        return True


Op = TypeVar("Op", bound=DelayedOperation)


class PurgatoryCount(NamedTuple):
    """The number of waiting operations, and of entries, including dead ones."""

    delayed_count: int
    watched_count: int


#: Stands for a missing entry.
_GONE = False


class Purgatory(Generic[Op]):
    """Waiting operations of one kind, by the keys of the events they wait for."""

    __slots__ = ("_entry_count", "_purge_interval", "_sweep_above", "_watchers", "_wheel")

    def __init__(self, wheel: TimingWheel[Op], *, purge_interval: int) -> None:
        """Create it empty.

        `purge_interval` is how many dead entries there may be before a sweep.
        """
        self._wheel = wheel
        self._purge_interval = purge_interval
        #: Operations under each key, in insertion order.
        self._watchers: dict[Hashable, dict[Op, None]] = {}
        #: Number of entries under all keys, and the number above which they are swept.
        self._entry_count = 0
        self._sweep_above = purge_interval

    @property
    def delayed_count(self) -> int:
        """Return the number of operations that wait and are not completed."""
        return self._wheel.pending_count

    @property
    def watched_count(self) -> int:
        """Return the number of entries under all keys, including those of completed operations."""
        return sum(map(len, self._watchers.values()))

    @property
    def count(self) -> PurgatoryCount:
        """Return the numbers of waiting operations and of entries."""
        return PurgatoryCount(self.delayed_count, self.watched_count)

    def counts_by(self, kind_of: Callable[[Hashable], str]) -> dict[str, PurgatoryCount]:
        """Return the numbers of waiting operations and of entries, by the kind of their keys.

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
        """Return the number of keys that have entries."""
        return len(self._watchers)

    @property
    def watched_keys(self) -> Mapping[Hashable, object]:
        """Return a live view of the keys that have entries."""
        return self._watchers

    def try_complete_else_watch(self, operation: Op, keys: Iterable[Hashable]) -> bool:
        """Complete an operation now, or let it wait.

        Returns True if the caller must send the response. False also if the operation was completed
        elsewhere meanwhile, which sends the response. Source: PUR-2.
        """
        if operation.can_complete():
            return operation.force_complete()
        self.watch(operation, keys)
        # An event since the first try did not find the operation.
        return operation.can_complete() and operation.force_complete()

    def watch(self, operation: Op, keys: Iterable[Hashable]) -> None:
        """Let an operation wait whose condition the caller has just checked and found not met.

        No event may have happened since that check.
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
            self._remove_dead_entries()

    def complete_for(self, key: Hashable) -> list[Op]:
        """Complete the operations that an event of `key` lets complete, and return them.

        The caller sends their responses. If one operation raises an error, none is completed: the
        next event can complete them.
        """
        watchers = self._watchers.get(key)
        if watchers is None:
            return []
        over: list[Op] = []
        # A copy: a check may lead to further watching and checks of the same key.
        for operation in tuple(watchers):
            if operation.is_completed or operation.can_complete_after(key):
                over.append(operation)
        if not over:
            return over
        for operation in over:
            self._remove_entry(watchers, operation)
        self._drop_if_empty(key, watchers)
        return [operation for operation in over if operation.force_complete()]

    def advance(self, now_ms: int) -> list[Op]:
        """Complete the operations past their deadline; return them, earliest first.

        The caller sends their responses.
        """
        expired = []
        for operation in self._wheel.advance(now_ms):
            if operation.force_complete():
                operation.is_expired = True
                expired.append(operation)
        if self._entry_count > self._sweep_above:
            self._remove_dead_entries()
        return expired

    def next_deadline_ms(self) -> int | None:
        """Return the time at which `advance` must be called next; None if no operation waits."""
        return self._wheel.next_deadline_ms()

    def drain(self) -> list[Op]:
        """Complete all waiting operations, for a shutdown.

        Return them, so that the caller responds.
        """
        self._watchers.clear()
        self._entry_count, self._sweep_above = 0, self._purge_interval
        return [operation for operation in self._wheel.drain() if operation.force_complete()]

    def _remove_entry(self, watchers: dict[Op, None], operation: Op) -> None:
        """Remove an operation from a list of watchers, and from the count of entries."""
        # A nested check may have removed it already.
        if watchers.pop(operation, _GONE) is None:
            self._entry_count -= 1

    def _remove_dead_entries(self) -> None:
        """Remove the entries of completed operations from all keys.

        Set the count for the next removal.
        """
        left = 0
        for key, watchers in tuple(self._watchers.items()):
            for operation in [listed for listed in watchers if listed.is_completed]:
                del watchers[operation]
            left += len(watchers)
            self._drop_if_empty(key, watchers)
        self._entry_count = left
        self._sweep_above = left + max(left, self._purge_interval)

    def _drop_if_empty(self, key: Hashable, watchers: dict[Op, None]) -> None:
        """Remove an empty list of watchers, if it is still the list of the key."""
        # A nested check may have removed this list, and a watch created another.
        if not watchers and self._watchers.get(key) is watchers:
            del self._watchers[key]
