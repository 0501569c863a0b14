"""A hierarchical timing wheel: many deadlines, with O(1) insertion, cancellation and expiry.

A wheel is a ring of buckets, each for one tick; the clock points at the bucket that is due.
Below: tick 1 ms, size 20, clock at 2. A timer in 8 ms goes to bucket 10, a timer in 19 ms to
bucket 1, which the clock has passed and which now represents 21.

```
                clock
                  v
  bucket    0  1  2  3  4 ... 10 ... 19        span = tick x size = 20 ms
  for      20 21  2  3  4     10     19
```

A deadline beyond the span goes to an overflow wheel, whose tick is the span of the wheel below:

```
  level 1   tick   1 ms   span   20 ms
  level 2   tick  20 ms   span  400 ms     350 -> bucket 17, [340, 360)
  level 3   tick 400 ms   span 8000 ms     450 -> bucket  1, [400, 800), with 446 and 473
  ...                                      created when a deadline needs it
```

When a bucket above level 1 is due, its timers are inserted again at a lower level: at 400 the timer
of 450 has 50 left and goes to level 2, [440, 460); at 440 it has 10 left and goes to level 1; at
450 it expires.

Only buckets with timers are in a queue (a heap of a few dozen entries for any number of timers), so
that the clock advances from one bucket to the next without single ticks.

Source: D13, TW-1 ... TW-8; Kafka's TimingWheel and SystemTimer.
Differs: a deadline between two ticks expires at the later one, in Kafka at the earlier; so a
timer is never early (P1). With Kafka's tick of 1 ms there is no difference. The clock advances to
the given time, in Kafka to the last bucket that was due: after an idle period new timers are
inserted at lower levels.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

#: Kafka's values (TW-8).
TICK_MS = 1
WHEEL_SIZE = 20

#: The expiry of a bucket that is not in the queue.
_NOT_QUEUED = -1


class Timer:
    """A deadline; subclasses carry the operation. It is in at most one wheel at a time.

    `deadline_ms` is by the clock of the wheel, and must not change while the timer is pending.
    """

    __slots__ = ("_bucket", "deadline_ms")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self._bucket: dict[Timer, None] | None = None

    @property
    def is_pending(self) -> bool:
        """Return True if the timer is in a wheel."""
        return self._bucket is not None

    def cancel(self) -> bool:
        """Remove the timer from its wheel; return False if it is in none (it may have expired)."""
        bucket = self._bucket
        if bucket is None:
            return False
        self._bucket = None
        del bucket[self]
        return True


T = TypeVar("T", bound=Timer)


class _Bucket:
    """The timers of one bucket of one level, in insertion order."""

    __slots__ = ("expiry", "timers")

    def __init__(self) -> None:
        self.expiry = _NOT_QUEUED
        self.timers: dict[Timer, None] = {}


class _Level:
    """One level, a ring of buckets; its fields count ticks of the lowest level."""

    __slots__ = ("buckets", "end", "span", "tick")

    def __init__(self, tick: int, size: int, clock: int) -> None:
        """Create a level at `clock` with `size` buckets of `tick` each."""
        self.tick = tick
        self.span = tick * size
        self.buckets = [_Bucket() for _ in range(size)]
        #: End (exclusive, in ticks) of the deadlines that fit; later ones belong to a coarser
        #: level.
        self.end = 0
        self.set_clock(clock)

    def set_clock(self, clock: int) -> None:
        """Set the present tick, and with it `end`, the first deadline too late for this level."""
        self.end = clock - clock % self.tick + self.span


class TimingWheel(Generic[T]):
    """Timers of one type, by deadline."""

    __slots__ = ("_clock", "_due", "_levels", "_queue", "_size", "_tick_ms")

    def __init__(
        self, start_ms: int, *, tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE
    ) -> None:
        """Create a wheel at `start_ms`; the first level has `wheel_size` buckets of `tick_ms`."""
        assert tick_ms >= 1
        assert wheel_size >= 2
        self._tick_ms = tick_ms
        self._size = wheel_size
        #: The present time in ticks: timers up to it have expired.
        self._clock = start_ms // tick_ms
        #: The first level, and coarser ones that are added for later deadlines.
        self._levels = [_Level(1, wheel_size, self._clock)]
        #: Timers whose deadline had passed when they were inserted; the next `advance` returns
        #: them.
        self._due: dict[Timer, None] = {}
        #: Heap of buckets with timers: expiry, tick of the level, bucket. Buckets whose timers were
        #: cancelled stay until they expire.
        self._queue: list[tuple[int, int, _Bucket]] = []

    @property
    def pending_count(self) -> int:
        """Return the number of timers; the cost is proportional to the buckets in use."""
        return len(self._due) + sum(len(bucket.timers) for _, _, bucket in self._queue)

    def insert(self, timer: T) -> None:
        """Put a timer that is in no wheel into this one.

        If its deadline has passed, the next `advance` returns it.
        """
        assert not timer.is_pending
        # A deadline between two ticks is rounded up.
        self._place_timer(timer, -(-timer.deadline_ms // self._tick_ms))

    def advance(self, now_ms: int) -> list[T]:
        """Set the present time; remove the expired timers and return them, earliest deadline first.

        Timers with the same deadline are in no particular order. An earlier time than the present
        one does not change the clock.
        """
        clock = max(now_ms // self._tick_ms, self._clock)
        drained = self._drain_due(clock)
        if clock > self._clock:
            self._clock = clock
            for level in self._levels:
                level.set_clock(clock)
        expired: list[T] = []
        tick_ms = self._tick_ms
        for timer in drained:
            deadline = -(-timer.deadline_ms // tick_ms)
            if deadline <= clock:
                timer._bucket = None
                expired.append(timer)
            else:
                self._place_timer(timer, deadline)
        if len(expired) > 1:
            # Nearly in order already; buckets of several levels may have come due together.
            expired.sort(key=_deadline)
        return expired

    def drain(self) -> list[T]:
        """Remove all timers; return them, earliest deadline first."""
        drained = self._drain_due(self._queue_end())
        for timer in drained:
            timer._bucket = None
        return sorted(drained, key=_deadline)

    def next_deadline_ms(self) -> int | None:
        """Return the time at which `advance` must be called next; None without timers.

        It is never later than the earliest deadline (rounded up to a tick), but may be earlier:
        then the advance only moves timers to a lower level.
        """
        if self._due:
            return self._clock * self._tick_ms
        queue = self._queue
        while queue:
            expiry, _, bucket = queue[0]
            if bucket.timers:
                return expiry * self._tick_ms
            heappop(queue)
            bucket.expiry = _NOT_QUEUED
        return None

    def bucket_of(self, timer: T) -> tuple[int, int] | None:
        """Return level (from 1) and bucket (from 0) of a timer; None if it is in none."""
        for number, level in enumerate(self._levels, start=1):
            for slot, bucket in enumerate(level.buckets):
                if timer in bucket.timers:
                    return number, slot
        return None

    def _place_timer(self, timer: Timer, deadline: int) -> None:
        """Put a timer into its bucket on the finest level that reaches `deadline` (in ticks).

        Source: TW-3.
        """
        if deadline <= self._clock:
            timer._bucket = self._due
            self._due[timer] = None
            return
        for level in self._levels:
            if deadline < level.end:
                break
        else:
            level = self._add_levels(deadline)
        ticks = deadline // level.tick
        bucket = level.buckets[ticks % self._size]
        if bucket.expiry == _NOT_QUEUED:
            bucket.expiry = ticks * level.tick
            heappush(self._queue, (bucket.expiry, level.tick, bucket))
        timer._bucket = bucket.timers
        bucket.timers[timer] = None

    def _add_levels(self, deadline: int) -> _Level:
        """Add coarser levels until a deadline fits; return the last one."""
        level = self._levels[-1]
        while deadline >= level.end:
            level = _Level(level.span, self._size, self._clock)
            self._levels.append(level)
        return level

    def _queue_end(self) -> int:
        """Return the latest expiry of a bucket, in ticks; the present tick if all are empty."""
        return max((expiry for expiry, _, _ in self._queue), default=self._clock)

    def _drain_due(self, clock: int) -> list[T]:
        """Remove and return the timers of all buckets that are due at the tick `clock`.

        All buckets are emptied before any timer is inserted again, because a bucket has one expiry
        at a time. Some of the timers may expire later: their deadlines are finer than the bucket.
        """
        drained: list[Timer] = []
        if self._due:
            drained += self._due
            self._due.clear()
        queue = self._queue
        while queue:
            expiry, _, bucket = queue[0]
            if expiry > clock:
                break
            heappop(queue)
            bucket.expiry = _NOT_QUEUED
            drained += bucket.timers
            bucket.timers.clear()
        return drained  # type: ignore[return-value]  # only `insert` puts timers in


def _deadline(timer: Timer) -> int:
    """Return a timer's deadline in ms, to sort by."""
    return timer.deadline_ms
