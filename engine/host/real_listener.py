"""A listening socket: accepts connections from its backlog, through its gate.

Without a free descriptor no connection can be accepted. The backlog is retried after a pause; open
connections are served meanwhile.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Protocol

from engine.host.acceptor import Acceptor, AcceptorPorts, Arrival
from engine.host.layered_connection import LayeredConnection
from engine.host.ports import Connection, ConnectionLimits, ListenOptions
from engine.host.real_connection import RealConnection, SharedConnectionState
from engine.host.receive_buffers import ReceiveBuffers
from engine.limits import ACCEPT_RETRY_MS

_NONE_NOW = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR, errno.ECONNABORTED)
_MAPPED = "::ffff:"


class ListenerNetwork(SharedConnectionState, Protocol):
    """The parts of a network that a listener needs."""

    buffers: ReceiveBuffers
    #: Descriptors from this number on are reserved for files.
    connections_below: int

    def descriptors_message(self) -> str:
        """Return the message for a connection refused for lack of descriptors."""

    def prepare(self, sock: socket.socket) -> None:
        """Set the options common to all sockets of connections."""

    def adopt(self, connection: RealConnection) -> None:
        """Register a connection to be flushed, checked for timeouts, and closed at the end."""

    def forget_listener(self, listener: RealListener) -> None:
        """Remove a closed listener from the network's listeners."""


class RealListener:
    """An address that accepts connections; see `engine.host.ports.Listener`."""

    def __init__(
        self,
        network: ListenerNetwork,
        sock: socket.socket,
        on_connect: Callable[[Connection], None],
        options: ListenOptions,
    ) -> None:
        """Watch a listening socket; `on_connect` gets each accepted connection."""
        self.limits: ConnectionLimits = options.limits
        #: The buffers for unfinished frames; those of the network, or the broker's own.
        self.buffers = options.room or network.buffers
        #: Called with peer and reason when a TLS handshake cannot begin.
        self.on_refused = options.on_refused
        self._network = network
        self._sock = sock
        _, port, *_ = sock.getsockname()
        self._port = int(port)
        self._on_connect = on_connect
        self._options = options
        self._is_closed = False
        #: Open connections, each with the address under which the gate counts it.
        self._addresses: dict[RealConnection, str] = {}
        loop, descriptor = network.loop, sock.fileno()
        self._acceptor: Acceptor[socket.socket] = Acceptor(
            loop,
            network.clock,
            options,
            AcceptorPorts(
                self._accept,
                self._start_connection,
                _turn_away,
                # A lambda, because `_on_readable` uses the acceptor that is under construction.
                lambda: loop.watch_readable(descriptor, self._on_readable),
                lambda: loop.unwatch_readable(descriptor),
            ),
        )

    @property
    def port(self) -> int:
        """Return the port that the listener listens on."""
        return self._port

    def _on_readable(self) -> None:
        """Accept connections, as the listening socket has some in its backlog."""
        self._acceptor.accept()

    def _accept(self) -> Arrival[socket.socket] | None:
        """Accept one connection; None if the backlog is empty or no descriptor is free."""
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
            self._options.on_kept_out(peer, self._network.descriptors_message())
            sock.close()

    def _cannot_accept(self, error: OSError) -> None:
        """Report a failed accept, and pause: the socket stays readable, and would fail at once."""
        self._options.on_kept_out("-", f"Error while accepting connection: {error.strerror}")
        self._acceptor.pause_until(self._network.clock.monotonic_ms() + ACCEPT_RETRY_MS)

    def _start_connection(self, arrival: Arrival[socket.socket]) -> None:
        """Start a connection that the gate admitted, with its buffers and layer."""
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
        """Remove a closed connection, and count it out of the gate's limits."""
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._options.gate.leave(address)

    def close_least_recently_used(self, reason: str) -> bool:
        """Close the connection that has been idle longest; return False if there is none.

        Called when the broker has more connections than its limit.
        """
        victim = min(self._addresses, key=_last_active_ms, default=None)
        if victim is not None:
            victim.close(reason)
        return victim is not None

    def close(self) -> None:
        """Stop accepting connections; open connections stay."""
        if not self._is_closed:
            self._is_closed = True
            self._acceptor.close()
            self._sock.close()
            self._network.forget_listener(self)


def _turn_away(arrival: Arrival[socket.socket]) -> None:
    """Close the socket of a connection that the gate refused."""
    arrival.socket.close()


def _last_active_ms(connection: RealConnection) -> int:
    """Return when a connection last received bytes, the key of the choice of the idlest."""
    return connection.last_active_ms
