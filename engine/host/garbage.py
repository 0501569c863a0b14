"""Which objects a collection of garbage looks at: those that came since the last full one.

```
young ──> of a few collections ──> full collection ── survivors ──> frozen: no collection sees them
                                                          once an hour, │ or when they have doubled
                        all is looked at, also what has been frozen <───┘
```

Python's full collection walks every object there is, in one turn of the loop: half a second with
10 000 partitions, in the midst of a request. What has survived one is seldom garbage later, and is
mostly freed without a collection, by its count of references. What is not, as connections and logs
of deleted topics, which refer to themselves, waits for the hour; or for as many others, so that no
client can fill the memory by coming and going.

To count what is frozen walks all of it too, 0.1 s with 10 000 partitions: it is counted when what
was frozen since may be that many, for some of it may have been freed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from engine.host.ports import Clock, Timers
from engine.limits import FROZEN_OBJECTS_MAX, FULL_COLLECTION_AFTER, WHOLE_COLLECTION_MS

_FULL = 2


class Collector(Protocol):
    """Python's `gc`, as far as it is needed."""

    #: Are called with "start" or "stop" and facts of a collection.
    callbacks: list[Callable[[Literal["start", "stop"], dict[str, int]], object]]

    def enable(self) -> None:
        """Collect when there is much that is new."""
        ...

    def get_threshold(self) -> tuple[int, int, int]:
        """Return after how many new objects, and collections of a generation, the next one is."""
        ...

    def set_threshold(self, objects: int, young: int, middle: int, /) -> None:
        """Set what `get_threshold` returns."""
        ...

    def freeze(self) -> None:
        """Let no collection look at what there is."""
        ...

    def get_freeze_count(self) -> int:
        """Return how many objects no collection looks at; walks all of them."""
        ...

    def get_objects(self, generation: int) -> list[object]:
        """Return the objects of a generation."""
        ...

    def unfreeze(self) -> None:
        """Let the next full collection look at all of it again."""
        ...

    def collect(self) -> int:
        """Make a full collection; returns how many objects were garbage."""
        ...


class Garbage:
    """Keeps full collections short; one for a process, from when it serves."""

    def __init__(self, collector: Collector, timers: Timers, clock: Clock) -> None:
        self._collector = collector
        self._timers = timers
        self._clock = clock
        self._has_frozen = False
        #: A look at all is due, or under way: its own survivors are no reason for another one.
        self._is_due = False
        self._is_over = False
        self._cancel: Callable[[], None] = lambda: None
        #: How many frozen objects are looked at before the hour is over, and how many may be there.
        self._count_max = 0
        self._count_at_most = 0
        self._thresholds = collector.get_threshold()

    def begin(self) -> None:
        """Freeze what there is, without a look, and begin to collect."""
        self._collector.freeze()
        self._note_count()
        self._collector.callbacks.append(self._collected)
        objects, young, _ = self._thresholds
        self._collector.set_threshold(objects, young, FULL_COLLECTION_AFTER)
        self._collector.enable()
        self._come_again()

    def end(self) -> None:
        """Leave collections as Python makes them."""
        self._is_over = True
        self._cancel()
        self._collector.callbacks.remove(self._collected)
        self._collector.set_threshold(*self._thresholds)

    def _collected(self, phase: str, facts: dict[str, int]) -> None:
        if phase == "stop" and facts["generation"] == _FULL:
            self._has_frozen = True
            # The survivors, which the collection has just walked.
            self._count_at_most += len(self._collector.get_objects(_FULL))
            self._collector.freeze()
            if self._count_at_most > self._count_max and not self._is_due:
                # Not here: what allocated an object waits for this.
                self._is_due = True
                self._timers.call_soon(self._look_if_doubled)

    def _look_if_doubled(self) -> None:
        self._count_at_most = self._collector.get_freeze_count()
        if self._count_at_most > self._count_max:
            self._look_now()
        self._is_due = False

    def _note_count(self) -> None:
        self._count_at_most = self._collector.get_freeze_count()
        self._count_max = 2 * self._count_at_most + FROZEN_OBJECTS_MAX

    def _look_now(self) -> None:
        if self._is_over:
            return
        self._is_due = True
        self._collector.unfreeze()
        self._collector.collect()
        self._note_count()
        self._has_frozen = self._is_due = False

    def _come_again(self) -> None:
        at_ms = self._clock.monotonic_ms() + WHOLE_COLLECTION_MS
        self._cancel = self._timers.call_at(at_ms, self._look_at_all)

    def _look_at_all(self) -> None:
        # A process that has nothing to do is not interrupted.
        if self._has_frozen:
            self._look_now()
        self._come_again()
