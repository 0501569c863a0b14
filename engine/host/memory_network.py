"""A network inside one process: frames pass through a queue that the test turns.

`MemoryTimers.run_until_idle` delivers; nothing moves by itself, so every order can be made.
Parts are joined as the wire would join them; a file region is read through its descriptor.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Callable, Sequence

from engine.host.memory import ManualClock
from engine.host.ports import Connection, FileRegion, SendPart
from engine.limits import LISTEN_BACKLOG


class MemoryTimers:
    """Work for later, run by hand; timers follow a ManualClock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()
        self._number = 0

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run once the clock has that time; returns what cancels it."""
        self._number += 1
        number = self._number
        heapq.heappush(self._timers, (monotonic_ms, number, callback))
        return lambda: self._cancelled.add(number)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run after everything that is due now."""
        self._soon.append(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """The same: tests have one thread."""
        self._soon.append(callback)

    def run_until_idle(self) -> None:
        """Run all that is due, and what that makes due, until nothing is."""
        while True:
            while self._timers and self._timers[0][0] <= self._clock.monotonic_ms():
                _, number, callback = heapq.heappop(self._timers)
                if number in self._cancelled:
                    self._cancelled.discard(number)
                else:
                    self._soon.append(callback)
            if not self._soon:
                return
            self._soon.popleft()()


class MemoryConnection:
    """One end of a connection; what is sent arrives at the other end on a later turn."""

    def __init__(self, timers: MemoryTimers, peer: str) -> None:
        self.peer = peer
        self.on_frame: Callable[[memoryview], None] = lambda _frame: None
        self.on_close: Callable[[str], None] = lambda _reason: None
        self.is_closed = False
        self._timers = timers
        self._other: MemoryConnection | None = None
        self._arrived: deque[bytes] = deque()
        self._is_paused = False

    def join(self, other: MemoryConnection) -> None:
        """Make two ends one connection."""
        self._other, other._other = other, self

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame for the other end."""
        frame = b"".join(_bytes_of(part) for part in parts)
        other = self._other
        if not self.is_closed and other is not None:
            self._timers.call_soon(lambda: other.arrive(frame))
        if on_sent is not None:
            self._timers.call_soon(on_sent)

    def arrive(self, frame: bytes) -> None:
        """Take a frame from the other end."""
        self._arrived.append(frame)
        self._hand_on()

    def _hand_on(self) -> None:
        while self._arrived and not self._is_paused and not self.is_closed:
            self.on_frame(memoryview(bytearray(self._arrived.popleft())))

    def pause(self) -> None:
        """Take no more frames until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Take frames again."""
        self._is_paused = False
        self._timers.call_soon(self._hand_on)

    def close(self, reason: str) -> None:
        """Close both ends; each is told once."""
        if self.is_closed:
            return
        self.is_closed = True
        self.on_close(reason)
        other = self._other
        if other is not None:
            self._timers.call_soon(lambda: other.close("closed by the peer"))


def _bytes_of(part: SendPart) -> bytes:
    if isinstance(part, FileRegion):
        return os.pread(part.descriptor, part.length, part.position)
    return bytes(part)


class MemoryNetwork:
    """Listeners by host and port, without sockets."""

    def __init__(self, timers: MemoryTimers) -> None:
        self._timers = timers
        self._listeners: dict[tuple[str, int], Callable[[Connection], None]] = {}
        self._next_port = 20_000
        #: How many may wait at each port.
        self.backlogs: dict[int, int] = {}

    def listen(
        self,
        host: str,
        port: int,
        on_connect: Callable[[Connection], None],
        backlog: int = LISTEN_BACKLOG,
    ) -> int:
        """Accept connections; returns the port, the next free one when 0 was asked."""
        if port == 0:
            self._next_port += 1
            port = self._next_port
        self._listeners[host, port] = on_connect
        self.backlogs[port] = backlog
        return port

    def connect(self, host: str, port: int) -> MemoryConnection:
        """Open a connection; without a listener it is closed on the next turn."""
        ours = MemoryConnection(self._timers, f"{host}:{port}")
        accept = self._listeners.get((host, port))
        if accept is None:
            self._timers.call_soon(lambda: ours.close("connection refused"))
            return ours
        theirs = MemoryConnection(self._timers, "memory:1")
        ours.join(theirs)
        accept(theirs)
        return ours
