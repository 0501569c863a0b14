"""How a listener lets connections in, the same for both networks.

```
backlog ── take ──> arrive: delay? ──> obstacle? ──> enter ──> let in
                        │ timer            │ on_room    │ refused: closed at once
                        └──── held, one of a listener ──┘
```

While one is held the others stay in the backlog: they are connected, and nothing reads from them.

Source: kafka.network.Acceptor.accept, ConnectionQuotas.inc.
Differs: a thread that waits there is a timer and a callback here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from engine.host.ports import Clock, ListenOptions, Timers
from engine.limits import ACCEPTS_PER_TURN_MAX

T = TypeVar("T")


class Arrival(NamedTuple, Generic[T]):
    """A connection that nobody has let in yet, by its peer's address."""

    address: str
    peer: str
    socket: T


class AcceptorPorts(NamedTuple, Generic[T]):
    """What an acceptor asks of its listener.

    `take` returns the next of the backlog, None if there is none now. `begin` and `end` turn the
    calls of `run` on and off.
    """

    take: Callable[[], Arrival[T] | None]
    let_in: Callable[[Arrival[T]], None]
    turn_away: Callable[[Arrival[T]], None]
    begin: Callable[[], None]
    end: Callable[[], None]


class Acceptor(Generic[T]):
    """Takes arrivals one by one past a gate."""

    def __init__(
        self, timers: Timers, clock: Clock, options: ListenOptions, ports: AcceptorPorts[T]
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._gate = options.gate
        self._on_kept_out = options.on_kept_out
        self._ports = ports
        self._held: Arrival[T] | None = None
        self._held_until_ms = 0
        self._is_watching = True
        self._is_closed = False
        self._cancel: Callable[[], None] | None = None
        self._gate.on_room = self._go_on
        ports.begin()

    @property
    def is_watching(self) -> bool:
        """Return whether what arrives is to be taken now."""
        return self._is_watching

    def run(self) -> None:
        """Take what the backlog has, up to a turn's share."""
        for _ in range(ACCEPTS_PER_TURN_MAX):
            if self._is_closed or self._cancel is not None:
                return
            arrival = self._held or self._take()
            if arrival is None or self._has_to_wait():
                return
            self._held = None
            refusal = self._gate.enter(arrival.address)
            if refusal is None:
                self._ports.let_in(arrival)
            else:
                self._on_kept_out(arrival.peer, refusal)
                self._ports.turn_away(arrival)
        self._watch()

    def _take(self) -> Arrival[T] | None:
        """Take the next of the backlog, and hold it."""
        arrival = self._ports.take()
        if arrival is None:
            if self._cancel is None:
                self._watch()
            return None
        now_ms = self._clock.monotonic_ms()
        delay_ms = self._gate.arrive(arrival.address, now_ms)
        self._held, self._held_until_ms = arrival, now_ms + delay_ms
        if delay_ms > 0:
            reason = f"held back for {delay_ms} ms by max.connection.creation.rate"
        else:
            reason = self._gate.obstacle() or ""
        if reason:
            self._on_kept_out(arrival.peer, reason)
        return arrival

    def _has_to_wait(self) -> bool:
        """Return whether the held one waits on, and see to it that it is tried again."""
        if self._clock.monotonic_ms() < self._held_until_ms:
            self.pause_until(self._held_until_ms)
            return True
        if self._gate.obstacle() is not None:
            self._unwatch()
            return True
        return False

    def pause_until(self, due_ms: int) -> None:
        """Take nothing until then (monotonic)."""
        self._unwatch()
        if self._cancel is None:
            self._cancel = self._timers.call_at(due_ms, self._due)

    def _due(self) -> None:
        self._cancel = None
        self.run()

    def _go_on(self) -> None:
        """Try again, on a later turn: the one that left may be in the midst of something."""
        if self._held is not None and self._cancel is None and not self._is_closed:
            self._timers.call_soon(self.run)

    def _watch(self) -> None:
        if not self._is_watching and not self._is_closed:
            self._is_watching = True
            self._ports.begin()

    def _unwatch(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._ports.end()

    def close(self) -> None:
        """Take no more, and turn away the one that is held."""
        if self._is_closed:
            return
        self._is_closed = True
        self._unwatch()
        self._gate.on_room = lambda: None
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        arrival, self._held = self._held, None
        if arrival is not None:
            self._ports.turn_away(arrival)
