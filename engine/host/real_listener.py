"""A listening socket: takes connections off its backlog, past its gate.

Without a free descriptor nobody can be accepted. What stands in the backlog is then looked at again
after a pause; the connections that are there are served meanwhile.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Protocol

from engine.host.acceptor import Acceptor, AcceptorPorts, Arrival
from engine.host.layered_connection import LayeredConnection
from engine.host.ports import Connection, ConnectionLimits, ListenOptions
from engine.host.real_connection import RealConnection, Switchboard
from engine.host.receive_buffers import ReceiveBuffers
from engine.limits import ACCEPT_RETRY_MS

_NONE_NOW = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR, errno.ECONNABORTED)
_MAPPED = "::ffff:"


class ListenerNetwork(Switchboard, Protocol):
    """What a listener asks of the network that it belongs to."""

    buffers: ReceiveBuffers
    #: Descriptors from this number on are kept for files.
    connections_below: int

    def too_many_descriptors(self) -> str:
        """Return what is said to a connection for which there is no descriptor."""

    def prepare(self, sock: socket.socket) -> None:
        """Set what every connection's socket has."""

    def adopt(self, connection: RealConnection) -> None:
        """Take a connection among those that are flushed, swept and closed."""

    def forget_listener(self, listener: RealListener) -> None:
        """Let go of a closed listener."""


class RealListener:
    """One address; see `engine.host.ports.Listener`."""

    def __init__(
        self,
        network: ListenerNetwork,
        sock: socket.socket,
        on_connect: Callable[[Connection], None],
        options: ListenOptions,
    ) -> None:
        self.limits: ConnectionLimits = options.limits
        #: What unfinished frames are received into.
        self.buffers = options.room or network.buffers
        self.on_refused = options.on_refused
        self._network = network
        self._sock = sock
        _, port, *_ = sock.getsockname()
        self._port = int(port)
        self._on_connect = on_connect
        self._options = options
        self._is_closed = False
        # Who is connected, by the address that the gate knows.
        self._addresses: dict[RealConnection, str] = {}
        loop, descriptor = network.loop, sock.fileno()
        self._acceptor: Acceptor[socket.socket] = Acceptor(
            loop,
            network.clock,
            options,
            AcceptorPorts(
                self._take,
                self._let_in,
                _turn_away,
                # Looked up when it is called: the acceptor is being made.
                lambda: loop.watch_readable(descriptor, self._readable),
                lambda: loop.unwatch_readable(descriptor),
            ),
        )

    @property
    def port(self) -> int:
        """Return the port."""
        return self._port

    def _readable(self) -> None:
        self._acceptor.run()

    def _take(self) -> Arrival[socket.socket] | None:
        while True:
            try:
                sock, (host, port, *_) = self._sock.accept()
            except OSError as error:
                if error.errno not in _NONE_NOW:
                    self._cannot_accept(error)
                return None
            peer = f"{host}:{port}"
            if sock.fileno() < self._network.connections_below:
                return Arrival(host.removeprefix(_MAPPED), peer, sock)
            self._options.on_kept_out(peer, self._network.too_many_descriptors())
            sock.close()

    def _cannot_accept(self, error: OSError) -> None:
        self._options.on_kept_out("-", f"Error while accepting connection: {error.strerror}")
        self._acceptor.pause_until(self._network.clock.monotonic_ms() + ACCEPT_RETRY_MS)

    def _let_in(self, arrival: Arrival[socket.socket]) -> None:
        sock = arrival.socket
        for option, size in (
            (socket.SO_SNDBUF, self.limits.send_buffer_bytes),
            (socket.SO_RCVBUF, self.limits.receive_buffer_bytes),
        ):
            if size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        layer_of = self._options.layer
        self._network.prepare(sock)
        if layer_of is None:
            connection = RealConnection(self._network, self, sock, arrival.peer)
        else:
            try:
                connection = LayeredConnection(self._network, self, sock, arrival.peer, layer_of)
            except OSError as error:
                self.on_refused(arrival.peer, f"no handshake: {error}")
                self._options.gate.leave(arrival.address)
                sock.close()
                return
        self._addresses[connection] = arrival.address
        self._network.adopt(connection)
        self._on_connect(connection)
        if not connection.is_closed:
            connection.start()

    def forget(self, connection: RealConnection) -> None:
        """Let go of a closed connection."""
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._options.gate.leave(address)

    def close_least_recently_used(self, reason: str) -> bool:
        """Close the connection that was silent for longest; False if there is none."""
        victim = min(self._addresses, key=_last_active_ms, default=None)
        if victim is not None:
            victim.close(reason)
        return victim is not None

    def close(self) -> None:
        """Accept no more; connections that are there stay."""
        if not self._is_closed:
            self._is_closed = True
            self._acceptor.close()
            self._sock.close()
            self._network.forget_listener(self)


def _turn_away(arrival: Arrival[socket.socket]) -> None:
    arrival.socket.close()


def _last_active_ms(connection: RealConnection) -> int:
    return connection.last_active_ms
