"""TCP on this machine: listeners and connections of one process, on its event loop.

What a connection does with bytes is in `real_connection.py`. Here: who may connect, how the kernel
buffers, and the sweep that finds connections which have waited too long.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.event_loop import EventLoop
from engine.host.ports import Clock, Connection
from engine.host.real_connection import RealConnection
from engine.host.receive_buffers import ReceiveBuffers
from engine.limits import (
    ACCEPTS_PER_TURN_MAX,
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    FRAME_BYTES_MAX,
    IN_FLIGHT_BYTES_MAX,
    LISTEN_BACKLOG,
)

_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
_SWEEP_MS = 5000


def local_host_name() -> str:
    """Return the name by which other hosts know this one, as far as it knows itself."""
    return socket.getfqdn()


class NetworkLimits(NamedTuple):
    """Bounds of one network; `idle_ms` 0 never closes an idle connection.

    The kernel's buffers are those of accepted connections; below 0 the kernel sizes them itself.
    `in_flight_bytes_max` bounds what all unfinished frames take.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    connections_max: int = CONNECTIONS_MAX
    connections_per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    idle_ms: int = 600_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    in_flight_bytes_max: int = IN_FLIGHT_BYTES_MAX


class CannotListen(StorageError):
    """An address could not be bound."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port}: {reason}")
        self.hint = "choose another port, or stop what listens there"
        self.host = host
        self.port = port


class RealNetwork:
    """Listeners and connections of one process, on one loop."""

    def __init__(self, loop: EventLoop, clock: Clock, limits: NetworkLimits | None = None) -> None:
        self.loop = loop
        self.clock = clock
        self._limits = limits or NetworkLimits()
        self.buffers = ReceiveBuffers(self._limits.in_flight_bytes_max)
        #: Told of every connection that is refused or cut, for counters and the log.
        self.on_refused: Callable[[str, str], None] = lambda _peer, _reason: None
        self._listeners: list[socket.socket] = []
        self._connections: dict[RealConnection, str] = {}
        self._per_address: dict[str, int] = {}
        self._dirty: list[RealConnection] = []
        self._cancel_sweep: Callable[[], None] | None = None

    @property
    def limits(self) -> NetworkLimits:
        """Return the bounds."""
        return self._limits

    @limits.setter
    def limits(self, limits: NetworkLimits) -> None:
        """Go by other bounds from now on."""
        self._limits = limits
        self.buffers.in_flight_bytes_max = limits.in_flight_bytes_max

    def listen(
        self,
        host: str,
        port: int,
        on_connect: Callable[[Connection], None],
        backlog: int = LISTEN_BACKLOG,
    ) -> int:
        """Accept connections, up to `backlog` of them waiting; returns the port.

        Raises CannotListen.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(backlog)
        except OSError as error:
            listener.close()
            raise CannotListen(host, port, error.strerror or str(error)) from error
        listener.setblocking(False)
        self._listeners.append(listener)
        self.loop.watch_readable(listener.fileno(), lambda: self._accept(listener, on_connect))
        self._sweep_later()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket, on_connect: Callable[[Connection], None]) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX):
            try:
                sock, address = listener.accept()
            except OSError as error:
                if error.errno not in (*_AGAIN, errno.ECONNABORTED):
                    # Out of descriptors: the connection stays in the backlog for the next turn.
                    self.on_refused("-", error.strerror or str(error))
                return
            host, peer = address[0], f"{address[0]}:{address[1]}"
            if not self._has_room_for(host):
                self.on_refused(peer, "too many connections")
                sock.close()
                continue
            self._size_buffers(sock)
            connection = self._adopt(sock, host, peer)
            on_connect(connection)
            if not connection.is_closed:
                connection.start()

    def _size_buffers(self, sock: socket.socket) -> None:
        limits = self.limits
        for option, size in (
            (socket.SO_SNDBUF, limits.send_buffer_bytes),
            (socket.SO_RCVBUF, limits.receive_buffer_bytes),
        ):
            if size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _has_room_for(self, host: str) -> bool:
        if len(self._connections) >= self.limits.connections_max:
            return False
        return self._per_address.get(host, 0) < self.limits.connections_per_address_max

    def _adopt(self, sock: socket.socket, host: str, peer: str) -> RealConnection:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = RealConnection(self, sock, peer)
        self._connections[connection] = host
        self._per_address[host] = self._per_address.get(host, 0) + 1
        return connection

    def connect(self, host: str, port: int) -> RealConnection:
        """Open a connection; a failure arrives by `on_close`, on a later turn."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        connection = self._adopt(sock, host, f"{host}:{port}")
        code = sock.connect_ex((host, port))
        if code not in (0, errno.EINPROGRESS):
            self.loop.call_soon(lambda: connection.close(os.strerror(code)))
            return connection
        connection.start()
        return connection

    def flush_later(self, connection: RealConnection) -> None:
        """Flush a connection at the end of the loop's turn."""
        if not self._dirty:
            self.loop.call_soon(self._flush_all)
        self._dirty.append(connection)

    def _flush_all(self) -> None:
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            if not connection.is_closed:
                connection.flush()

    def refuse(self, connection: RealConnection, reason: str) -> None:
        """Cut a connection that breaks a limit, and say so."""
        self.on_refused(connection.peer, reason)
        connection.close(reason)

    def forget(self, connection: RealConnection) -> None:
        """Let go of a closed connection."""
        host = self._connections.pop(connection, None)
        if host is None:
            return
        left = self._per_address[host] - 1
        if left:
            self._per_address[host] = left
        else:
            del self._per_address[host]

    def _sweep_later(self) -> None:
        if self._cancel_sweep is None:
            at_ms = self.clock.monotonic_ms() + _SWEEP_MS
            self._cancel_sweep = self.loop.call_at(at_ms, self._sweep)

    def _sweep(self) -> None:
        self._cancel_sweep = None
        now_ms = self.clock.monotonic_ms()
        for connection in self.connections:
            reason = connection.overdue(now_ms)
            if reason is not None:
                self.refuse(connection, reason)
        if self._listeners:
            self._sweep_later()

    @property
    def connections(self) -> list[RealConnection]:
        """Return the open connections."""
        return list(self._connections)

    @property
    def connection_count(self) -> int:
        """Return how many connections are open."""
        return len(self._connections)

    def close(self) -> None:
        """Stop listening and close every connection."""
        for listener in self._listeners:
            self.loop.unwatch_readable(listener.fileno())
            listener.close()
        self._listeners.clear()
        if self._cancel_sweep is not None:
            self._cancel_sweep()
            self._cancel_sweep = None
        for connection in self.connections:
            connection.close("the broker stops")
