"""TCP on this machine: listeners and connections of one process, on its event loop.

Connections handle bytes in `real_connection.py`, are accepted in `real_listener.py` and opened in
`outgoing_connection.py`. This module has their shared state, and the sweep that closes connections
whose deadline has passed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from engine.errors import StorageError
from engine.host.descriptors import connections_below, descriptor_limit
from engine.host.event_loop import EventLoop
from engine.host.handshake_turns import HandshakeTurns
from engine.host.name_lookup import (
    HostAddress,
    LookupFailed,
    NameLookups,
    Resolve,
    look_up,
    parse_address,
    resolve,
)
from engine.host.outgoing_connection import (
    ConnectTarget,
    LayeredOutgoingConnection,
    OutgoingConnection,
)
from engine.host.ports import Clock, Connection, ConnectionLimits, ListenOptions
from engine.host.real_connection import RealConnection
from engine.host.real_listener import RealListener
from engine.host.receive_buffers import ReceiveBuffers
from engine.host.stream_layer import LayerOf
from engine.limits import ANSWER_FRAME_BYTES_MAX, IN_FLIGHT_BYTES_MAX

_SWEEP_MS = 5000
_OUTGOING = ConnectionLimits(frame_bytes_max=ANSWER_FRAME_BYTES_MAX)


def local_host_name() -> str:
    """Return this host's fully qualified name, as its resolver knows it."""
    return socket.getfqdn()


class CannotListen(StorageError):
    """An address could not be bound."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port}: {reason}")
        self.hint = "choose another port, or stop what listens there"
        self.host = host
        self.port = port


class RealNetwork:
    """Listeners and connections of one process, on one loop.

    It is the origin of outgoing connections, which have its limits. No incoming connection has a
    descriptor from `connections_below` on.
    """

    def __init__(
        self,
        loop: EventLoop,
        clock: Clock,
        limits: ConnectionLimits = _OUTGOING,
        *,
        descriptors_max: int | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        """Create without sockets.

        `resolve` looks a host name up, and runs on a thread of its own.
        """
        self.loop = loop
        self.clock = clock
        self.limits = limits
        #: Shares the loop's turns among TLS handshakes, which take long.
        self.handshakes = HandshakeTurns(loop, clock)
        self._descriptors_max = descriptors_max or descriptor_limit()
        #: Incoming connections with this or a higher descriptor are refused: those are for files.
        self.connections_below = connections_below(self._descriptors_max)
        #: The buffers for unfinished frames of listeners without buffers of their own.
        self.buffers = ReceiveBuffers(IN_FLIGHT_BYTES_MAX)
        #: Called for outgoing connections: they report their end by `on_close`, so it does nothing.
        self.on_refused: Callable[[str, str], None] = lambda _peer, _reason: None
        self._resolve = resolve
        self._lookups = NameLookups(loop, resolve)
        self._listeners: list[RealListener] = []
        #: Open connections of both kinds, for the sweep of idle ones and the close.
        self._connections: set[RealConnection] = set()
        #: Connections with unsent bytes that are flushed at the end of this turn.
        self._dirty: list[RealConnection] = []
        #: Cancels the next check of deadlines; None while there is no listener.
        self._cancel_sweep: Callable[[], None] | None = None

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> RealListener:
        """Accept connections, with up to `options.backlog` waiting; raises CannotListen."""
        family, address = self._resolve_listener(host, port)
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            raise CannotListen(host, port, error.strerror or str(error)) from error
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port))
            sock.listen(options.backlog)
        except OSError as error:
            sock.close()
            raise CannotListen(host, port, error.strerror or str(error)) from error
        sock.setblocking(False)
        listener = RealListener(self, sock, on_connect, options)
        self._listeners.append(listener)
        self._schedule_sweep()
        return listener

    def _resolve_listener(self, host: str, port: int) -> HostAddress:
        """Return the address to bind for a host: IPv4 before IPv6; raises CannotListen."""
        if not host:
            return HostAddress(socket.AF_INET, host)
        found = look_up(host, self._resolve)
        if isinstance(found, LookupFailed):
            raise CannotListen(host, port, found.reason)
        return min(found, key=lambda one: one.family != socket.AF_INET)

    def forget_listener(self, listener: RealListener) -> None:
        """Remove a closed listener, and stop the search for idle connections after the last one."""
        self._listeners.remove(listener)
        if not self._listeners and self._cancel_sweep is not None:
            self._cancel_sweep()
            self._cancel_sweep = None

    def descriptors_message(self) -> str:
        """Return the message for a connection refused for lack of descriptors."""
        return (
            f"Too many open files: {self.connections_below} of {self._descriptors_max} "
            "descriptors are in use, and the others are kept for files"
        )

    @staticmethod
    def prepare(sock: socket.socket) -> None:
        """Set the options common to all sockets of connections."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def adopt(self, connection: RealConnection) -> None:
        """Register a connection to be flushed, checked for timeouts, and closed at the end."""
        self._connections.add(connection)

    def connect(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> Connection:
        """Open a connection; every failure is reported by `on_close`, on a later turn."""
        target = ConnectTarget(self.prepare, host, port, receive_buffer_bytes)
        if layer is None:
            connection = OutgoingConnection(self, self, target)
        else:
            connection = LayeredOutgoingConnection(self, self, target, layer)
        self.adopt(connection)
        numeric = parse_address(host)
        if numeric is not None:
            connection.on_found([numeric])
        else:
            self._lookups.start_lookup(host, connection.on_found)
        return connection

    def address_of(self, host: str) -> str | None:
        """Return the numeric address of a host, or None if it is not found. May block."""
        found = look_up(host, self._resolve)
        if isinstance(found, LookupFailed) or not found:
            return None
        first, *_ = found
        return first.address

    def flush_later(self, connection: RealConnection) -> None:
        """Flush a connection at the end of the loop's turn, with all frames queued until then."""
        if not self._dirty:
            self.loop.call_soon(self._flush_all)
        self._dirty.append(connection)

    def _flush_all(self) -> None:
        """Flush the connections with output queued in this turn of the loop."""
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            if not connection.is_closed:
                connection.flush()

    def forget(self, connection: RealConnection) -> None:
        """Remove a closed connection."""
        self._connections.discard(connection)

    def _schedule_sweep(self) -> None:
        """Schedule the next search for idle and stuck connections, unless one is scheduled."""
        if self._cancel_sweep is None:
            at_ms = self.clock.monotonic_ms() + _SWEEP_MS
            self._cancel_sweep = self.loop.call_at(at_ms, self._close_overdue)

    def _close_overdue(self) -> None:
        """Close connections that are idle or stuck for too long, and schedule the next sweep."""
        self._cancel_sweep = None
        now_ms = self.clock.monotonic_ms()
        try:
            for connection in self.connections:
                reason = connection.overdue(now_ms)
                if reason is not None:
                    connection.refuse(reason)
        finally:
            # A fault of one connection's owner does not stop the sweep of the others.
            if self._listeners:
                self._schedule_sweep()

    @property
    def connections(self) -> list[RealConnection]:
        """Return the open connections, incoming and outgoing."""
        return list(self._connections)

    @property
    def connection_count(self) -> int:
        """Return the number of open connections, incoming and outgoing."""
        return len(self._connections)

    def close(self) -> None:
        """Stop listening and close every connection."""
        for listener in list(self._listeners):
            listener.close()
        for connection in self.connections:
            connection.close("the broker stops")
