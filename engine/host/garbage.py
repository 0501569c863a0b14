"""Tuning of Python's garbage collector: collections scan only objects newer than the last full one.

```
young ──> of a few collections ──> full collection ── survivors ──> frozen: no collection scans them
                                                          once an hour, │ or when they have doubled
                           everything is unfrozen and scanned <─────────┘
```

Python's full collection walks every object in one turn of the loop: half a second with 10 000
partitions, while requests wait. An object that survived one is seldom garbage later, and most are
freed by reference counting without a collection. Cyclic garbage, such as closed connections and
logs of deleted topics, waits for the hourly scan, or for the frozen objects to double: clients that
connect and disconnect cannot fill the memory.

Counting the frozen objects walks all of them too, 0.1 s with 10 000 partitions. They are counted
only when the sum of all survivors since the last count reaches the limit, as some may be freed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from engine.host.ports import Clock, Timers
from engine.limits import FROZEN_OBJECTS_MAX, FULL_COLLECTION_AFTER, WHOLE_COLLECTION_MS

_FULL = 2


class Collector(Protocol):
    """The functions of Python's `gc` module that `Garbage` uses."""

    #: Called with "start" or "stop" and the statistics of a collection.
    callbacks: list[Callable[[Literal["start", "stop"], dict[str, int]], object]]

    def enable(self) -> None:
        """Enable automatic collection."""
        ...

    def get_threshold(self) -> tuple[int, int, int]:
        """Return the thresholds: new objects, then collections of each younger generation."""
        ...

    def set_threshold(self, objects: int, young: int, middle: int, /) -> None:
        """Set the thresholds that `get_threshold` returns."""
        ...

    def freeze(self) -> None:
        """Exclude all current objects from collections."""
        ...

    def get_freeze_count(self) -> int:
        """Return the number of frozen objects; its cost grows with that number."""
        ...

    def get_objects(self, generation: int) -> list[object]:
        """Return the objects of a generation."""
        ...

    def unfreeze(self) -> None:
        """Include the frozen objects in the next full collection."""
        ...

    def collect(self) -> int:
        """Run a full collection; returns the number of garbage objects."""
        ...


class Garbage:
    """Keeps full collections short; one instance per process, started when it serves requests."""

    def __init__(self, collector: Collector, timers: Timers, clock: Clock) -> None:
        """Create with Python's collector; nothing changes before `start`."""
        self._collector = collector
        self._timers = timers
        self._clock = clock
        #: Whether objects were frozen since the last full scan: an idle process needs none.
        self._has_frozen = False
        #: Whether a full scan is due or running: its own survivors must not trigger another one.
        self._is_due = False
        self._is_over = False
        #: Cancels the timer of the next hourly scan.
        self._cancel: Callable[[], None] = lambda: None
        #: A scan is due before the hour is over once there are more frozen objects than this.
        self._count_max = 0
        #: Upper bound of the number of frozen objects; the exact number is counted only when this
        #: bound exceeds `_count_max`, because counting takes long.
        self._count_at_most = 0
        #: Python's own thresholds, which `stop` restores.
        self._thresholds = collector.get_threshold()

    def start(self) -> None:
        """Freeze all current objects without a scan, and enable collections.

        Frozen objects are not visited by collections, so that a broker with much state has no long
        pauses.
        """
        self._collector.freeze()
        self._note_count()
        self._collector.callbacks.append(self._on_collection)
        objects, young, _ = self._thresholds
        self._collector.set_threshold(objects, young, FULL_COLLECTION_AFTER)
        self._collector.enable()
        self._schedule_scan()

    def stop(self) -> None:
        """Restore Python's own thresholds, and stop the hourly scans."""
        self._is_over = True
        self._cancel()
        self._collector.callbacks.remove(self._on_collection)
        self._collector.set_threshold(*self._thresholds)

    def _on_collection(self, phase: str, facts: dict[str, int]) -> None:
        """Freeze the survivors of a full collection; schedule a scan if they may have doubled.

        Called by Python's collector before and after each collection; `phase` is "start" or "stop".
        """
        if phase == "stop" and facts["generation"] == _FULL:
            self._has_frozen = True
            # The survivors of the collection that has just ended.
            self._count_at_most += len(self._collector.get_objects(_FULL))
            self._collector.freeze()
            if self._count_at_most > self._count_max and not self._is_due:
                # On a later turn: the allocation that triggered this collection waits for it.
                self._is_due = True
                self._timers.call_soon(self._scan_if_doubled)

    def _scan_if_doubled(self) -> None:
        """Count the frozen objects, and scan all objects if the count exceeds the limit."""
        self._count_at_most = self._collector.get_freeze_count()
        if self._count_at_most > self._count_max:
            self._scan_now()
        self._is_due = False

    def _note_count(self) -> None:
        """Count the frozen objects after a scan, and set the limit at which the next scan is due.

        The limit is about twice the count.
        """
        self._count_at_most = self._collector.get_freeze_count()
        self._count_max = 2 * self._count_at_most + FROZEN_OBJECTS_MAX

    def _scan_now(self) -> None:
        """Unfreeze and scan all objects; this takes long with many of them."""
        if self._is_over:
            return
        self._is_due = True
        self._collector.unfreeze()
        self._collector.collect()
        self._note_count()
        self._has_frozen = self._is_due = False

    def _schedule_scan(self) -> None:
        """Schedule the next hourly scan of all objects."""
        at_ms = self._clock.monotonic_ms() + WHOLE_COLLECTION_MS
        self._cancel = self._timers.call_at(at_ms, self._scan_hourly)

    def _scan_hourly(self) -> None:
        """Scan all objects once an hour, if any were frozen since the last scan."""
        # An idle process is not interrupted: nothing was frozen since the last scan.
        if self._has_frozen:
            self._scan_now()
        self._schedule_scan()
