"""Acceptance of connections by a listener, shared by the real and the in-memory network.

```
backlog ── take ──> arrive: delay? ──> obstacle? ──> enter ──> let in
                        │ timer            │ on_room    │ refused: closed at once
                        └──── held, one of a listener ──┘
```

While one connection is held, the others stay in the backlog: connected, but not read from.

Source: kafka.network.Acceptor.accept, ConnectionQuotas.inc.
Differs: Kafka's acceptor thread sleeps or waits; here that is a timer and a callback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from engine.host.ports import Clock, ListenOptions, Timers
from engine.limits import ACCEPTS_PER_TURN_MAX

T = TypeVar("T")


class Arrival(NamedTuple, Generic[T]):
    """An accepted connection that has not passed the gate yet, with its peer's address."""

    address: str
    peer: str
    socket: T


class AcceptorPorts(NamedTuple, Generic[T]):
    """The calls of a listener that its acceptor needs.

    `take` returns the next connection of the backlog, or None if it is empty. `begin` and `end`
    start and stop the loop's calls of `Acceptor.accept`.
    """

    take: Callable[[], Arrival[T] | None]
    let_in: Callable[[Arrival[T]], None]
    turn_away: Callable[[Arrival[T]], None]
    begin: Callable[[], None]
    end: Callable[[], None]


class Acceptor(Generic[T]):
    """Passes arrivals through a gate, one at a time."""

    def __init__(
        self, timers: Timers, clock: Clock, options: ListenOptions, ports: AcceptorPorts[T]
    ) -> None:
        """Create an acceptor that watches the backlog.

        The gate of `options` admits each arrival.
        """
        self._timers = timers
        self._clock = clock
        self._gate = options.gate
        self._on_kept_out = options.on_kept_out
        self._ports = ports
        #: The connection taken from the backlog that waits for its delay or for room. None without
        #: one.
        self._held: Arrival[T] | None = None
        #: Monotonic time until which the creation rate delays `_held`.
        self._held_until_ms = 0
        #: Whether the event loop calls `accept` for new connections in the backlog.
        self._is_watching = True
        self._is_closed = False
        #: Ends the timer of a pause; None while there is no pause.
        self._cancel: Callable[[], None] | None = None
        self._gate.on_room = self._accept_later
        ports.begin()

    @property
    def is_watching(self) -> bool:
        """Return True while `accept` is called for new connections in the backlog."""
        return self._is_watching

    def accept(self) -> None:
        """Accept connections from the backlog, up to the share of one turn of the event loop.

        Called when the listening socket is readable, and when a throttled connection may enter. A
        connection that the gate refuses is turned away.
        """
        for _ in range(ACCEPTS_PER_TURN_MAX):
            if self._is_closed or self._cancel is not None:
                return
            arrival = self._held or self._take_next()
            if arrival is None or self._wait_if_throttled():
                return
            self._held = None
            refusal = self._gate.enter(arrival.address)
            if refusal is None:
                self._ports.let_in(arrival)
            else:
                self._on_kept_out(arrival.peer, refusal)
                self._ports.turn_away(arrival)
        self._watch()

    def _take_next(self) -> Arrival[T] | None:
        """Return the next connection of the backlog, None without one.

        The connection is held until its throttle time is over; log how long that takes.
        """
        arrival = self._ports.take()
        if arrival is None:
            if self._cancel is None:
                self._watch()
            return None
        now_ms = self._clock.monotonic_ms()
        delay_ms = self._gate.arrive(arrival.address, now_ms)
        self._held, self._held_until_ms = arrival, now_ms + delay_ms
        if delay_ms > 0:
            reason = f"throttled for {delay_ms} ms by max.connection.creation.rate"
        else:
            reason = self._gate.waiting_reason() or ""
        if reason:
            self._on_kept_out(arrival.peer, reason)
        return arrival

    def _wait_if_throttled(self) -> bool:
        """Return True if the held connection must still wait, and schedule its next attempt."""
        if self._clock.monotonic_ms() < self._held_until_ms:
            self.pause_until(self._held_until_ms)
            return True
        if self._gate.waiting_reason() is not None:
            self._unwatch()
            return True
        return False

    def pause_until(self, due_ms: int) -> None:
        """Accept nothing until a monotonic time: of a throttled connection, or after an error."""
        self._unwatch()
        if self._cancel is None:
            self._cancel = self._timers.call_at(due_ms, self._on_pause_over)

    def _on_pause_over(self) -> None:
        """Accept again once the pause of `pause_until` is over."""
        self._cancel = None
        self.accept()

    def _accept_later(self) -> None:
        """Call `accept` on a later turn, for a held connection, once the gate has room.

        The caller that freed the room may not be done yet.
        """
        if self._held is not None and self._cancel is None and not self._is_closed:
            self._timers.call_soon(self.accept)

    def _watch(self) -> None:
        """Start the calls of `accept` for the backlog, unless they are made already."""
        if not self._is_watching and not self._is_closed:
            self._is_watching = True
            self._ports.begin()

    def _unwatch(self) -> None:
        """Stop the calls of `accept`: new connections wait in the backlog."""
        if self._is_watching:
            self._is_watching = False
            self._ports.end()

    def close(self) -> None:
        """Accept no more, and turn away the connection that is held."""
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
