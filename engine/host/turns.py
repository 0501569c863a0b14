"""Work that takes long, in shares of the loop's turns: whoever else waits is served in between.

```
begin ── work ── is_over? ── await next ── work ── is_over? …
                   after SHARE_MS_MAX, behind all that is due on the loop
```

A clock that stands still, as that of a simulation within a callback, ends no share.
"""

from __future__ import annotations

from functools import partial

from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import SHARE_MS_MAX


class Share:
    """The share of a turn that is used now."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self._began_ms = clock.monotonic_ms()

    def is_over(self) -> bool:
        """Return whether others are to have their turn first."""
        return self._clock.monotonic_ms() - self._began_ms >= SHARE_MS_MAX

    async def next(self) -> None:
        """Wait for the next turn, with a new share."""
        had_turn: Promise[None] = Promise()
        self._timers.call_soon(partial(had_turn.keep, None))
        await had_turn
        self._began_ms = self._clock.monotonic_ms()


class LoopTurns:
    """Gives shares of the loop's turns."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock

    def begin(self) -> Share:
        """Return a share that begins now."""
        return Share(self._timers, self._clock)


class Line:
    """Lets work that takes several turns be done one after the other, in the order it came."""

    def __init__(self) -> None:
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
        """Let the next one begin."""
        if self._last is mine:
            self._last = None
        mine.keep(None)
