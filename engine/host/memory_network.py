"""A network inside one process: frames pass through a queue that the test drives.

`MemoryTimers.run_until_idle` delivers them; no frame moves on its own, so that a test determines
the order. The parts of a frame are joined as on the wire; a file region is read through its
descriptor.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from engine.host.acceptor import Acceptor, AcceptorPorts, Arrival
from engine.host.memory import ManualClock
from engine.host.ports import (
    Clock,
    Connection,
    FrameBound,
    ListenOptions,
    PauseReason,
    SendPart,
    Timers,
)
from engine.host.send_parts import part_bytes
from engine.host.stream_layer import LayerOf
from engine.limits import FRAMES_PER_TURN_MAX, TURN_MS_MAX

#: Delivers calls to the other end of a connection, in order, now or later.
Carry: TypeAlias = Callable[[Callable[[], None]], None]


class ClockedTimers(Timers, Protocol):
    """Timers that expose their clock."""

    clock: Clock


class MemoryTimers:
    """Callbacks for later, run by the test; timers follow a ManualClock."""

    def __init__(self, clock: ManualClock) -> None:
        """Create without callbacks; none runs before `run_until_idle`."""
        self.clock: Clock = clock
        self._soon: deque[Callable[[], None]] = deque()
        #: Due time and number of each timer; a cancelled one has no entry in `_callbacks`.
        self._due: list[tuple[int, int]] = []
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._number = 0

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once the clock reaches a time; return a function that cancels it."""
        self._number += 1
        number = self._number
        heapq.heappush(self._due, (monotonic_ms, number))
        self._callbacks[number] = callback

        def cancel() -> None:
            """Drop the callback, if it has not run."""
            self._callbacks.pop(number, None)

        return cancel

    @property
    def waiting_count(self) -> int:
        """Return the number of pending timers."""
        return len(self._callbacks)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` after everything that is due now."""
        self._soon.append(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Do the same as `call_soon`: tests have one thread."""
        self._soon.append(callback)

    def run_until_idle(self) -> None:
        """Run everything that is due, including work that becomes due, until nothing is left."""
        while True:
            while self._due:
                due_ms, number = self._due[0]
                if due_ms > self.clock.monotonic_ms():
                    break
                heapq.heappop(self._due)
                callback = self._callbacks.pop(number, None)
                if callback is not None:
                    self._soon.append(callback)
            if not self._soon:
                return
            self._soon.popleft()()


class MemoryWorkers:
    """Worker threads simulated by turns of the loop, so that every run has the same order."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` after everything that is due now."""
        self._waiting.append(work)
        self._timers.call_soon(self._run_next)

    def _run_next(self) -> None:
        """Run the oldest queued work; the queue is empty if `stop` has run all of it."""
        if self._waiting:
            self._waiting.popleft()()

    def stop(self) -> None:
        """Run all work that is queued."""
        while self._waiting:
            self._run_next()


class MemoryConnection:
    """One end of a connection; a frame arrives at the other end on a later turn.

    `carry` delivers it, by default on the next turn.
    """

    def __init__(
        self,
        timers: ClockedTimers,
        peer: str,
        *,
        is_open: bool = True,
        carry: Carry | None = None,
    ) -> None:
        """Create one end; the network connects it to the other end."""
        self.peer = peer
        #: Called at the end in addition to `on_close`, by the listener that let the connection in.
        self.on_end: Callable[[], None] = lambda: None
        self.on_frame: Callable[[memoryview], None] = lambda _frame: None
        self.on_close: Callable[[str], None] = lambda _reason: None
        self.is_closed = False
        self._timers = timers
        self._carry = carry or timers.call_soon
        #: The other end; None before both are joined.
        self._other: MemoryConnection | None = None
        #: Whether the listener has accepted the connection. Until then arriving frames wait in
        #: `_arrived`, as in a kernel's buffer.
        self._is_open = is_open
        self._arrived: deque[bytes] = deque()
        #: Whether a turn for the frames in `_arrived` is scheduled.
        self._is_in_line = False
        #: The bound on the frames of this connection, None for the network's.
        self._bound: FrameBound | None = None
        #: The bits of the reasons (`PauseReason`) for which no frame is passed on.
        self._pauses = 0
        self.last_active_ms = timers.clock.monotonic_ms()

    def open(self) -> None:
        """Deliver frames from now on: the connection is accepted."""
        self._is_open = True
        self._deliver_received()

    def join(self, other: MemoryConnection) -> None:
        """Connect this end with the other end of the connection."""
        self._other, other._other = other, self

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame for the other end."""
        frame = b"".join(part_bytes(part) for part in parts)
        other = self._other
        if not self.is_closed and other is not None:
            self._carry(lambda: other.receive(frame))
        if on_sent is not None:
            self._timers.call_soon(on_sent)

    def receive(self, frame: bytes) -> None:
        """Receive a frame from the other end."""
        self._arrived.append(frame)
        self.last_active_ms = self._timers.clock.monotonic_ms()
        self._deliver_received()

    def _deliver_received(self) -> None:
        """Deliver received frames, up to the share of a turn; the rest waits for the next turn."""
        if self._is_in_line:
            return
        began_ms = self._timers.clock.monotonic_ms()
        left = FRAMES_PER_TURN_MAX
        while self._arrived and self._is_open and not self._pauses and not self.is_closed:
            if not left or self._timers.clock.monotonic_ms() - began_ms >= TURN_MS_MAX:
                self._is_in_line = True
                self._timers.call_soon(self._run_turn)
                return
            left -= 1
            frame = self._arrived.popleft()
            if self._bound is not None and len(frame) > self._bound.bytes_max:
                self._arrived.clear()
                self._bound.on_larger(len(frame))
                return
            self.on_frame(memoryview(bytearray(frame)))

    def _run_turn(self) -> None:
        """Deliver the frames that the share of an earlier turn left over."""
        self._is_in_line = False
        self._deliver_received()

    def pause(self, reason: PauseReason) -> None:
        """Stop taking frames until every reason is removed."""
        self._pauses |= reason

    def resume(self, reason: PauseReason) -> None:
        """Remove one reason for the pause; frames are delivered once no reason is left."""
        self._pauses &= ~reason
        if not self._pauses:
            self._timers.call_soon(self._deliver_received)

    def bound_frames(self, bound: FrameBound | None) -> None:
        """Set a size limit for frames below that of the limits; see `Connection.bound_frames`."""
        self._bound = bound

    def peer_certificate(self) -> bytes | None:
        """Return None: nothing is encrypted."""
        return None

    def close(self, reason: str) -> None:
        """Close both ends; `on_close` is called once at each."""
        if self.is_closed:
            return
        self.is_closed = True
        self.on_end()
        self.on_close(reason)
        self._notify_end()

    def drop_silently(self, *, notifies_peer: bool) -> None:
        """End without `on_close`, as if the process died; `notifies_peer` closes the other end."""
        if self.is_closed:
            return
        self.is_closed = True
        if notifies_peer:
            self._notify_end()

    def _notify_end(self) -> None:
        """Close the other end once it has received the frames in flight."""
        other = self._other
        if other is not None:
            self._carry(lambda: other.close("closed by the peer"))


class PendingDelivery:
    """Queues calls until a name look-up ends, then makes them in order."""

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        self._held: list[Callable[[], None]] | None = []

    def __call__(self, run: Callable[[], None]) -> None:
        """Run a delivery now, or when `open` is called."""
        if self._held is None:
            self._carry(run)
        else:
            self._held.append(run)

    def open(self) -> None:
        """Run the queued deliveries, and run all later ones directly."""
        held, self._held = self._held or [], None
        for run in held:
            self._carry(run)


class LookupFault(NamedTuple):
    """A fault of a host's look-up: its delay, and whether it fails."""

    delay_ms: int
    fails: bool


class ListeningNetwork(Protocol):
    """The parts of a network that a listener in memory needs."""

    @property
    def timers(self) -> ClockedTimers:
        """Return the timers of the listening process."""
        ...

    def forget(self, key: tuple[str, int]) -> None:
        """Remove a closed listener."""
        ...


class MemoryListener:
    """An address that accepts connections; see `engine.host.ports.Listener`."""

    def __init__(
        self,
        network: ListeningNetwork,
        key: tuple[str, int],
        on_connect: Callable[[Connection], None],
        options: ListenOptions,
    ) -> None:
        """Listen at `key`, a host and port; called by the network, which registers the listener."""
        #: Limits of the connections that the listener accepts.
        self.limits = options.limits
        self.options = options
        self._network = network
        self._key = key
        self._on_connect = on_connect
        #: Connections that were not accepted yet.
        self._backlog: deque[Arrival[MemoryConnection]] = deque()
        #: Open connections, in the order of acceptance.
        self._connections: dict[MemoryConnection, None] = {}
        self._is_closed = False
        self._acceptor: Acceptor[MemoryConnection] = Acceptor(
            network.timers,
            network.timers.clock,
            options,
            AcceptorPorts(
                self._accept, self._start_connection, _turn_away, lambda: None, lambda: None
            ),
        )

    @property
    def port(self) -> int:
        """Return the port that the listener listens on."""
        _, port = self._key
        return port

    def queue_connection(self, arrival: Arrival[MemoryConnection]) -> None:
        """Add a connection to the backlog, and accept it unless the acceptor is waiting."""
        self._backlog.append(arrival)
        if self._acceptor.is_watching:
            self._acceptor.accept()

    def _accept(self) -> Arrival[MemoryConnection] | None:
        """Return the next connection of the backlog, None if it is empty."""
        return self._backlog.popleft() if self._backlog else None

    def _start_connection(self, arrival: Arrival[MemoryConnection]) -> None:
        """Open a connection that the gate admitted; it leaves the gate when it ends."""
        connection = arrival.socket
        if connection.is_closed:
            self.options.gate.leave(arrival.address)
            return
        self._connections[connection] = None

        def forget() -> None:
            """Remove the connection, and count it out of the gate's limits."""
            del self._connections[connection]
            self.options.gate.leave(arrival.address)

        connection.on_end = forget
        self._on_connect(connection)
        connection.open()

    def close_least_recently_used(self, reason: str) -> bool:
        """Close the connection that has been idle longest; return False if there is none.

        Called when the broker has more connections than its limit.
        """
        connections = self._connections
        victim = min(connections, key=lambda connection: connection.last_active_ms, default=None)
        if victim is not None:
            victim.close(reason)
        return victim is not None

    def close(self) -> None:
        """Stop accepting; open connections stay."""
        if self._is_closed:
            return
        self._is_closed = True
        self._acceptor.close()
        self._network.forget(self._key)
        while self._backlog:
            _turn_away(self._backlog.popleft())


def _turn_away(arrival: Arrival[MemoryConnection]) -> None:
    """Close a connection that the gate refused, or that a closed listener had not accepted."""
    arrival.socket.close("turned away")


class MemoryNetwork:
    """Listeners by host and port, without sockets."""

    def __init__(self, timers: MemoryTimers) -> None:
        """Create without listeners."""
        self.timers = timers
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        #: The last port that was given to a listener for port 0.
        self._next_port = 20_000
        #: Addresses of host names; any other name is its own address.
        self.addresses: dict[str, str | None] = {}
        #: Faults of host look-ups, by host.
        self.lookup_faults: dict[str, LookupFault] = {}

    @property
    def listeners(self) -> list[MemoryListener]:
        """Return the open listeners."""
        return list(self._listeners.values())

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> MemoryListener:
        """Accept connections; port 0 takes the next free port."""
        if port == 0:
            self._next_port += 1
            port = self._next_port
        listener = MemoryListener(self, (host, port), on_connect, options)
        self._listeners[host, port] = listener
        return listener

    def forget(self, key: tuple[str, int]) -> None:
        """Remove a closed listener."""
        self._listeners.pop(key, None)

    def connect(
        self,
        host: str,
        port: int,
        address: str = "memory",
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> MemoryConnection:
        """Open a connection, now or after a slow look-up; a failure closes it.

        Buffer sizes and layers have no effect here.
        """
        held = PendingDelivery(self.timers.call_soon)
        ours = MemoryConnection(self.timers, f"{host}:{port}", carry=held)
        theirs = MemoryConnection(self.timers, f"{address}:1", is_open=False)
        ours.join(theirs)

        def arrive() -> None:
            """Hand the connection to its listener; refuse it if nothing listens there."""
            listener = self._listeners.get((host, port))
            if listener is None:
                self.timers.call_soon(lambda: ours.close("connection refused"))
                return
            listener.queue_connection(Arrival(address, theirs.peer, theirs))
            held.open()

        fault = self.lookup_faults.get(host)
        if fault is None:
            arrive()
        else:
            self._delay_lookup(fault, ours, arrive)
        return ours

    def _delay_lookup(
        self, fault: LookupFault, ours: MemoryConnection, arrive: Callable[[], None]
    ) -> None:
        """End the look-up of a host after the fault's delay: arrive, or close the connection."""

        def end() -> None:
            """Close the connection if the look-up fails, else let it arrive."""
            if fault.fails:
                ours.close("unknown host")
            elif not ours.is_closed:
                arrive()

        self.timers.call_at(self.timers.clock.monotonic_ms() + fault.delay_ms, end)

    def address_of(self, host: str) -> str | None:
        """Return a host's address, or None if it is not found."""
        return self.addresses.get(host, host)
