"""Work that takes long, in shares of the loop's turns: others who wait are served in between.

```
begin ── work ── is_over? ── await next ── work ── is_over? …
                   after SHARE_MS_MAX: behind all that is due on the loop, and those who wait for
                   their share before; one share in each turn of the loop, however many wait
```

A simulation, whose clock stands still within a callback, ends shares by chance (`ends_early`).
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


def never() -> bool:
    """Return False: shares end by the clock alone."""
    return False


class LoopTurns:
    """Gives shares of the loop's turns to those who wait, one after the other."""

    def __init__(
        self, timers: Timers, clock: Clock, ends_early: Callable[[], bool] = never
    ) -> None:
        self._timers = timers
        self.clock = clock
        #: Whether a share is over before its time.
        self.ends_early = ends_early
        self._waiting: deque[Promise[None]] = deque()
        self._is_due = False

    def begin(self) -> Share:
        """Return a share that begins now."""
        return Share(self)

    async def each(self, items: Iterable[T], do: Callable[[T], object]) -> None:
        """Do something with each item, in as many turns as it takes.

        What makes the items goes on in turns too: it looks after each whether it still holds.
        """
        share = self.begin()
        for item in items:
            do(item)
            if share.is_over():
                await share.next()

    def apart(self) -> LoopTurns:
        """Return turns for work that does not wait for those who wait here."""
        return LoopTurns(self._timers, self.clock, self.ends_early)

    def line(self) -> Line:
        """Return a line in which each begins in a turn of its own."""
        return Line(self._timers)

    def await_turn(self) -> Promise[None]:
        """Return what is kept when it is the caller's turn."""
        had_turn: Promise[None] = Promise()
        self._waiting.append(had_turn)
        self._come_soon()
        return had_turn

    def _come_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._give_turn)

    def _give_turn(self) -> None:
        self._is_due = False
        had_turn = self._waiting.popleft()
        if self._waiting:
            # Before the work: it may fail.
            self._come_soon()
        had_turn.keep(None)


class Share:
    """The share of a turn that is used now."""

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._began_ms = turns.clock.monotonic_ms()

    def is_over(self) -> bool:
        """Return whether others are to have their turn first."""
        turns = self._turns
        return turns.clock.monotonic_ms() - self._began_ms >= SHARE_MS_MAX or turns.ends_early()

    async def next(self) -> None:
        """Wait for the next turn, with a new share."""
        await self._turns.await_turn()
        self._began_ms = self._turns.clock.monotonic_ms()


class Line:
    """Lets work that takes several turns be done one after the other, in the order it came."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._last: Promise[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether somebody is at work, or waits to be."""
        return self._last is not None

    async def enter(self) -> Promise[None]:
        """Wait for all who came before; returns what `leave` is given."""
        before, mine = self._last, Promise[None]()
        self._last = mine
        if before is not None:
            await before
        return mine

    def leave(self, mine: Promise[None]) -> None:
        """Let the next one begin, in a turn of its own: its faults are not those of who leaves."""
        if self._last is mine:
            self._last = None
        else:
            self._timers.call_soon(partial(mine.keep, None))
