"""A connection opened by this process: look-up, connecting, frames.

```
name ── look-up on a thread ──> addresses ── each in turn ──> connected ─ (handshake) ─> frames
          │ fails                             │ the last one fails
          └───────────────────────────────────┴──> on_close, on a later turn
```

Frames sent before it is connected are queued. A name may have addresses of both families, one of
which is unreachable (`localhost` is often ::1 and 127.0.0.1).
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from engine.host.layered_connection import LayeredBytes, LayerIo
from engine.host.name_lookup import Found, HostAddress, LookupFailed
from engine.host.ports import PauseReason
from engine.host.real_connection import ConnectionOrigin, RealConnection, SharedConnectionState
from engine.host.stream_layer import LayerOf


class ConnectTarget(NamedTuple):
    """The address of a connection; `prepare` sets the options common to all sockets."""

    prepare: Callable[[socket.socket], None]
    host: str
    port: int
    receive_buffer_bytes: int


class OutgoingConnection(RealConnection):
    """A connection to a host and port."""

    __slots__ = ("_addresses", "_is_connecting", "_target")

    def __init__(
        self, network: SharedConnectionState, origin: ConnectionOrigin, target: ConnectTarget
    ) -> None:
        """Create without a socket; the host's look-up calls `on_found`."""
        super().__init__(network, origin, None, f"{target.host}:{target.port}")
        #: Nothing is read before the connection is established.
        self._pauses = int(PauseReason.CONNECTING)
        self._target = target
        #: Addresses of the host that were not tried yet.
        self._addresses: deque[HostAddress] = deque()
        #: Whether a socket is being connected, and watched until it is writable.
        self._is_connecting = False

    def on_found(self, found: Found) -> None:
        """Connect to the addresses of a host, or close with the reason why there are none."""
        if self.is_closed:
            return
        if isinstance(found, LookupFailed):
            self._close_soon(found.reason)
        else:
            self._addresses.extend(found)
            self._connect_next("no address")

    def _connect_next(self, reason: str) -> None:
        """Start connecting to the next address, or close if none is left.

        `reason` is the failure of the address before, with which the connection is then closed.
        """
        while self._addresses:
            family, address = self._addresses.popleft()
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                reason = error.strerror or str(error)
                continue
            try:
                self._target.prepare(sock)
                size = self._target.receive_buffer_bytes
                if size >= 0:
                    # Set before connecting, when the TCP window is negotiated.
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
                code = sock.connect_ex((address, self._target.port))
            except (OSError, OverflowError) as error:
                sock.close()
                reason = str(error)
                continue
            if code not in (0, errno.EINPROGRESS):
                sock.close()
                reason = os.strerror(code)
                continue
            self.attach(sock)
            self._is_connecting = True
            self._network.loop.watch_writable(self._descriptor, self._on_connected)
            return
        self._close_soon(reason)

    def _close_soon(self, reason: str) -> None:
        """Close the connection on the next turn of the loop."""
        # The caller has not set `on_close` yet.
        self._network.loop.call_soon(lambda: self.close(reason))

    def _on_connected(self) -> None:
        """Begin to take frames after a successful connect, else try the next address.

        Called when the socket is writable, which ends an attempt either way.
        """
        self._end_connecting()
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._sock.close()
            self._connect_next(os.strerror(code))
            return
        self.last_active_ms = self._network.clock.monotonic_ms()
        self._established()

    def _established(self) -> None:
        """Start reading, and send the frames queued while the connection was being opened."""
        self.resume(PauseReason.CONNECTING)
        self.flush()

    def _end_connecting(self) -> None:
        """Stop watching for the result of `connect`, which a writable socket signals."""
        self._is_connecting = False
        self._network.loop.unwatch_writable(self._descriptor)

    def flush(self) -> None:
        """Write the queue, once the connection is established."""
        if self._pauses & PauseReason.CONNECTING:
            self._is_dirty = False
            return
        super().flush()

    def _close_socket(self) -> None:
        """Close the socket and end an attempt to connect; do nothing without a socket."""
        if self._is_connecting:
            self._end_connecting()
        elif self._pauses & PauseReason.CONNECTING:
            # There is no socket: the look-up is in progress, or no address is left.
            return
        super()._close_socket()


class LayeredOutgoingConnection(LayeredBytes, OutgoingConnection):
    """A connection to a host and port with a layer between socket and frames."""

    __slots__ = ("_io", "_layer_of")

    def __init__(
        self,
        network: SharedConnectionState,
        origin: ConnectionOrigin,
        target: ConnectTarget,
        layer_of: LayerOf,
    ) -> None:
        """Create without a socket; `layer_of` makes the TLS layer once it is connected."""
        super().__init__(network, origin, target)
        self._layer_of = layer_of
        self._pauses |= PauseReason.TLS
        #: The layer, and what its reads and writes wait for.
        self._io = LayerIo(self.last_active_ms)

    def _established(self) -> None:
        """Create the layer of the connected socket, and begin its handshake."""
        self.resume(PauseReason.CONNECTING)
        try:
            self._io.layer = self._layer_of(self._sock)
        except OSError as error:
            self.close(str(error))
            return
        self.start()

    def _close_socket(self) -> None:
        """Close as a plain connection while there is no TLS layer yet."""
        if self._io.layer is None:
            OutgoingConnection._close_socket(self)
        else:
            super()._close_socket()
