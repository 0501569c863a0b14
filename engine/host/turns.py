"""Long work split over turns of the loop, so that other requests are served in between.

```
begin ── work ── is_over? ── await next ── work ── is_over? …
                   after SHARE_MS_MAX: after all that is due on the loop, and after earlier
                   waiters; one share in each turn of the loop, however many wait
```

In a simulation the clock does not move within a callback, so shares end at random (`ends_early`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import SHARE_MS_MAX

T = TypeVar("T")


def no_time() -> int:
    """Return 0, as a clock that never advances."""
    return 0


def never() -> bool:
    """Return False, as the test whether a share ends early: only the clock ends it."""
    return False


class LoopTurns:
    """Gives shares of the loop's turns to waiting work, in order."""

    def __init__(
        self, timers: Timers, clock: Clock, ends_early: Callable[[], bool] = never
    ) -> None:
        """Create; `ends_early` returns True to end a share before SHARE_MS_MAX: requests wait."""
        self._timers = timers
        self.clock = clock
        #: Whether a share ends before its time.
        self.ends_early = ends_early
        #: Promises of work that waits for a turn, in order.
        self._waiting: deque[Promise[None]] = deque()
        #: Whether a share of a coming turn is scheduled.
        self._is_due = False

    def begin(self) -> Share:
        """Return a share of the current turn that starts now."""
        return Share(self)

    async def each(self, items: Iterable[T], do: Callable[[T], object]) -> None:
        """Call `do` with each item, in as many turns of the event loop as needed.

        The iterable is advanced across turns too: it must check after each item that it is still
        valid.
        """
        share = self.begin()
        for item in items:
            do(item)
            if share.is_over():
                await share.next()

    def apart(self) -> LoopTurns:
        """Return separate turns for work that must not wait for the work queued here."""
        return LoopTurns(self._timers, self.clock, self.ends_early)

    def line(self) -> Line:
        """Return a line: its entries run one after another, each starting in a new turn."""
        return Line(self._timers)

    def pause(self, pause_ms: int) -> Promise[None]:
        """Return a promise that is kept after `pause_ms`."""
        is_over: Promise[None] = Promise()
        self._timers.call_at(self.clock.monotonic_ms() + pause_ms, partial(is_over.keep, None))
        return is_over

    def await_turn(self) -> Promise[None]:
        """Return a promise that is kept when the caller's turn starts."""
        had_turn: Promise[None] = Promise()
        self._waiting.append(had_turn)
        self._schedule_turn()
        return had_turn

    def _schedule_turn(self) -> None:
        """Schedule `_start_next_turn` for the next turn, unless that is done already."""
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._start_next_turn)

    def _start_next_turn(self) -> None:
        """Let the work that has waited longest continue, after scheduling the next turn."""
        self._is_due = False
        had_turn = self._waiting.popleft()
        if self._waiting:
            # Scheduled before the work, which may raise.
            self._schedule_turn()
        had_turn.keep(None)


class Share:
    """The time that work may use in the current turn of the loop."""

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._began_ms = turns.clock.monotonic_ms()

    def is_over(self) -> bool:
        """Return True if the work must yield to other work before it continues."""
        turns = self._turns
        return turns.clock.monotonic_ms() - self._began_ms >= SHARE_MS_MAX or turns.ends_early()

    async def next(self) -> None:
        """Wait for the next turn, and start a new share."""
        await self._turns.await_turn()
        self._began_ms = self._turns.clock.monotonic_ms()


class Line:
    """Runs work that takes several turns, one after another in order of arrival."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._last: Promise[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Return True if work is running or waiting."""
        return self._last is not None

    async def enter(self) -> Promise[None]:
        """Wait for all earlier entries of the line; return the token to pass to `leave`."""
        before, mine = self._last, Promise[None]()
        self._last = mine
        if before is not None:
            await before
        return mine

    def leave(self, mine: Promise[None]) -> None:
        """End an entry, and start the next one in a turn of its own.

        So an error of the next entry does not reach the caller. `mine` is the token of `enter`.
        """
        if self._last is mine:
            self._last = None
        else:
            self._timers.call_soon(partial(mine.keep, None))
