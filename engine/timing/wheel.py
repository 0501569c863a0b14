"""A hierarchical timing wheel: many deadlines, O(1) to set, to cancel and to let expire.

A wheel is a ring of buckets, each for one tick; the clock points at the bucket that is due.
Below: tick 1 ms, size 20, clock at 2. A task of 8 ms more goes to bucket 10, one of 19 ms more
to bucket 1, which the clock has left behind and which now stands for 21.

```
                clock
                  v
  bucket    0  1  2  3  4 ... 10 ... 19        span = tick x size = 20 ms
  stands   20 21  2  3  4     10     19
  for
```

A deadline beyond the span goes to an overflow wheel, whose tick is the span of the wheel below:

```
  level 1   tick   1 ms   span   20 ms
  level 2   tick  20 ms   span  400 ms     350 -> bucket 17, [340, 360)
  level 3   tick 400 ms   span 8000 ms     450 -> bucket  1, [400, 800), with 446 and 473
  ...                                      made when a deadline needs it
```

A bucket above level 1 that comes due gives its tasks back to the wheel, which puts them lower:
at 400 the task of 450 has 50 left and goes to level 2, [440, 460); at 440 it has 10 left and
goes to level 1; at 450 it expires.

Only buckets that hold something wait in a queue (a heap of a few dozen entries, however large the
number of timers), so that the clock jumps from one to the next and nothing ticks.

Source: D13, TW-1 ... TW-8; Kafka's TimingWheel and SystemTimer.
Differs: a deadline between two ticks expires at the later one, in Kafka at the earlier; so a
timer is never early (P1). With Kafka's tick of 1 ms there is no difference. The clock moves to
the time that is told, in Kafka to the last bucket that was due: a wheel that was idle puts new
timers lower.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

#: Kafka's values (TW-8).
TICK_MS = 1
WHEEL_SIZE = 20

#: The expiry of a bucket that is in no queue.
_NOT_QUEUED = -1


class Timer:
    """A deadline; subclass it to carry the operation. One wheel at a time holds it.

    `deadline_ms` is on the clock of the wheel, and fixed while the timer is pending.
    """

    __slots__ = ("_bucket", "deadline_ms")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self._bucket: dict[Timer, None] | None = None

    @property
    def is_pending(self) -> bool:
        """Return whether a wheel holds it."""
        return self._bucket is not None

    def cancel(self) -> bool:
        """Take it off its wheel; returns False if none held it (it may have expired)."""
        bucket = self._bucket
        if bucket is None:
            return False
        self._bucket = None
        del bucket[self]
        return True


T = TypeVar("T", bound=Timer)


class _Bucket:
    """The timers of one tick of one level, in the order they came."""

    __slots__ = ("expiry", "timers")

    def __init__(self) -> None:
        self.expiry = _NOT_QUEUED
        self.timers: dict[Timer, None] = {}


class _Level:
    """One ring. Its tick, span and clock count ticks of the lowest level."""

    __slots__ = ("buckets", "end", "span", "tick")

    def __init__(self, tick: int, size: int, clock: int) -> None:
        """Begin at `clock`; `size` buckets of `tick` each."""
        self.tick = tick
        self.span = tick * size
        self.buckets = [_Bucket() for _ in range(size)]
        #: Deadlines from here on (exclusive end, in ticks) belong to a coarser level.
        self.end = 0
        self.set_clock(clock)

    def set_clock(self, clock: int) -> None:
        """Move to a time; `end` is the first that no longer fits."""
        self.end = clock - clock % self.tick + self.span


class TimingWheel(Generic[T]):
    """Timers of one type, by deadline."""

    __slots__ = ("_clock", "_due", "_levels", "_queue", "_size", "_tick_ms")

    def __init__(
        self, start_ms: int, *, tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE
    ) -> None:
        """Begin at `start_ms`; the first level has `wheel_size` buckets of `tick_ms` each."""
        assert tick_ms >= 1
        assert wheel_size >= 2
        self._tick_ms = tick_ms
        self._size = wheel_size
        #: Ticks up to which timers have expired.
        self._clock = start_ms // tick_ms
        #: The first level, and coarser ones that are added for later deadlines.
        self._levels = [_Level(1, wheel_size, self._clock)]
        #: Timers whose deadline had passed when they were added; the next advance expires them.
        self._due: dict[Timer, None] = {}
        #: Heap of buckets with timers: expiry, tick of the level, bucket. Emptied buckets stay
        #: until they expire.
        self._queue: list[tuple[int, int, _Bucket]] = []

    @property
    def pending_count(self) -> int:
        """Count the timers on the wheel, at the cost of the buckets in use."""
        return len(self._due) + sum(len(bucket.timers) for _, _, bucket in self._queue)

    def insert(self, timer: T) -> None:
        """Take a timer that no wheel holds; a passed deadline expires with the next advance."""
        assert not timer.is_pending
        # A deadline between two ticks waits for the later one.
        self._place(timer, -(-timer.deadline_ms // self._tick_ms))

    def advance(self, now_ms: int) -> list[T]:
        """Move the clock and return the expired timers, earliest deadline first.

        Timers of one deadline come in no promised order. A time before the clock's moves nothing.
        """
        clock = max(now_ms // self._tick_ms, self._clock)
        drained = self._drain(clock)
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
                self._place(timer, deadline)
        if len(expired) > 1:
            # Nearly in order already; buckets of several levels may have come due together.
            expired.sort(key=_deadline)
        return expired

    def drain(self) -> list[T]:
        """Take all timers off, earliest deadline first."""
        drained = self._drain(self._queue_end())
        for timer in drained:
            timer._bucket = None
        return sorted(drained, key=_deadline)

    def next_deadline_ms(self) -> int | None:
        """Return when to advance next, or None without timers.

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
        """Return level (from 1) and bucket (from 0) of a timer, or None if on no level."""
        for number, level in enumerate(self._levels, start=1):
            for slot, bucket in enumerate(level.buckets):
                if timer in bucket.timers:
                    return number, slot
        return None

    def _place(self, timer: Timer, deadline: int) -> None:
        """Put a timer into its bucket. Source: TW-3."""
        if deadline <= self._clock:
            timer._bucket = self._due
            self._due[timer] = None
            return
        for level in self._levels:
            if deadline < level.end:
                break
        else:
            level = self._grown_for(deadline)
        ticks = deadline // level.tick
        bucket = level.buckets[ticks % self._size]
        if bucket.expiry == _NOT_QUEUED:
            bucket.expiry = ticks * level.tick
            heappush(self._queue, (bucket.expiry, level.tick, bucket))
        timer._bucket = bucket.timers
        bucket.timers[timer] = None

    def _grown_for(self, deadline: int) -> _Level:
        """Add overflow wheels until one takes a deadline."""
        level = self._levels[-1]
        while deadline >= level.end:
            level = _Level(level.span, self._size, self._clock)
            self._levels.append(level)
        return level

    def _queue_end(self) -> int:
        """Return the latest expiry of a bucket: then no timer is left in the wheel."""
        return max((expiry for expiry, _, _ in self._queue), default=self._clock)

    def _drain(self, clock: int) -> list[T]:
        """Empty all buckets that are due at a time; return their timers.

        All are emptied before any timer is placed again: a bucket serves one expiry at a time.
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
    return timer.deadline_ms
