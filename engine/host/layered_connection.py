"""A connection whose bytes pass through a layer such as TLS; it frames like any other connection.

```
start ── handshake, paused for TLS ──> frames; file regions are read and sent like other bytes
```

Frames sent before the handshake is over are queued and leave after it.
"""

from __future__ import annotations

import os
import socket

from engine.host.ports import FileRegion, FrameBound, PauseReason
from engine.host.real_connection import ConnectionOrigin, RealConnection, SharedConnectionState
from engine.host.stream_layer import LayerOf, StreamLayer, WantsRead, WantsWrite
from engine.limits import HALF_FRAME_DEADLINE_MS, LAYER_SEND_BYTES


class LayerIo:
    """A connection's layer, and which socket events its reads and writes wait for."""

    __slots__ = ("began_ms", "layer", "read_wants_write", "reads_on", "write_wants_read")

    def __init__(self, began_ms: int) -> None:
        """Create without a layer; `began_ms` is when the connection was made (monotonic)."""
        #: The TLS layer; None until there is a socket.
        self.layer: StreamLayer | None = None
        self.began_ms = began_ms
        #: Whether a read of bytes that the layer has buffered is scheduled.
        self.reads_on = False
        #: Whether a read of the layer waits until the socket is writable, and a write until it is
        #: readable: a TLS handshake may need both.
        self.read_wants_write = False
        self.write_wants_read = False


class LayeredBytes(RealConnection):
    """A connection, accepted or opened here, whose bytes pass through a layer."""

    __slots__ = ()

    _io: LayerIo

    @property
    def _bytes(self) -> StreamLayer:
        """Return the TLS layer; there is one once the TCP connection is established."""
        layer = self._io.layer
        assert layer is not None
        return layer

    def peer_certificate(self) -> bytes | None:
        """Return the certificate that the peer has presented, DER, None without one."""
        return self._bytes.peer_certificate()

    def bound_frames(self, bound: FrameBound | None) -> None:
        """Limit the size of frames, and the bytes read ahead of them.

        Before authentication a client must not fill memory.
        """
        super().bound_frames(bound)
        if not self.is_closed:
            self._bytes.read_little(is_little=bound is not None)

    def start(self) -> None:
        """Begin the handshake, after the handshakes that were queued before."""
        self._network.handshakes.queue(self._continue_handshake)

    def _schedule_handshake(self) -> None:
        """Continue the handshake in a later turn; the socket is not watched until then."""
        self._network.loop.unwatch_readable(self._descriptor)
        self._network.handshakes.queue(self._continue_handshake)

    def _continue_handshake(self) -> None:
        """Continue the handshake; once it is done, resume reading and send queued bytes."""
        if self.is_closed or not self._pauses & PauseReason.TLS:
            return
        try:
            self._bytes.handshake()
        except BlockingIOError as want:
            self._network.loop.watch_readable(self._descriptor, self._schedule_handshake)
            self._watch_writable(is_wanted=isinstance(want, WantsWrite))
            return
        except OSError as error:
            reason = f"handshake failed: {error}"
            self._origin.on_refused(self.peer, reason)
            self.close(reason)
            return
        loop = self._network.loop
        loop.unwatch_readable(self._descriptor)
        self._watch_writable(is_wanted=False)
        self.last_active_ms = self._network.clock.monotonic_ms()
        # Reads the bytes received after the handshake, unless another reason pauses the connection.
        self.resume(PauseReason.TLS)
        self.flush()

    def _watch_writable(self, *, is_wanted: bool) -> None:
        """Watch the socket for writability only while the handshake needs to write."""
        if is_wanted is self._waits_to_write:
            return
        self._waits_to_write = is_wanted
        if is_wanted:
            self._network.loop.watch_writable(self._descriptor, self._continue_handshake)
        else:
            self._network.loop.unwatch_writable(self._descriptor)

    def _on_readable(self) -> None:
        """Read from the socket, then schedule a read of what the layer still has buffered."""
        super()._on_readable()
        self._read_on_soon()

    def _read_on_soon(self) -> None:
        """Schedule a read of the bytes that the layer has buffered: the socket reports none."""
        if not self._io.reads_on and not self.is_closed and self._bytes.has_more():
            self._io.reads_on = True
            self._network.loop.call_soon(self._continue_reading)

    def _continue_reading(self) -> None:
        """Read the layer's buffered bytes, unless the connection was paused or closed meanwhile."""
        self._io.reads_on = False
        if not self._pauses and not self.is_closed:
            self._on_readable()

    def _watch(self) -> None:
        """Watch the socket, and schedule a read of bytes that the layer buffered before a pause."""
        super()._watch()
        self._read_on_soon()

    def _receive(self, buffer: memoryview, overflow: memoryview | None = None) -> int:
        """Read decrypted bytes into `buffer`; return their number.

        0 if nothing is there yet, -1 if the connection has closed. `overflow` is not used.
        """
        try:
            size = self._bytes.recv_into(buffer)
        except BlockingIOError as want:
            if isinstance(want, WantsWrite):
                self._io.read_wants_write = True
                self._wait_to_write()
            return 0
        except OSError as error:
            self.close(str(error) or "connection lost")
            return -1
        if size == 0:
            self.close("closed by the peer")
            return -1
        self.last_active_ms = self._network.clock.monotonic_ms()
        return size

    def flush(self) -> None:
        """Write the queue, once the handshake is over."""
        if self._pauses & PauseReason.TLS:
            self._is_dirty = False
            return
        super().flush()
        if self.is_closed:
            return
        try:
            self._bytes.flush()
        except BlockingIOError:
            self._wait_to_write()
            return
        except OSError as error:
            self.close(error.strerror or "connection lost")
            return
        if self._io.read_wants_write:
            self._io.read_wants_write = False
            self._network.loop.call_soon(self._continue_reading)

    def _write_some(self) -> int:
        """Send the first part of the queue, up to LAYER_SEND_BYTES; return the bytes sent.

        0 means that a file region has ended early. Raises WantsRead if the layer must read first.
        """
        self._io.write_wants_read = False
        part = self._queue[0]
        if isinstance(part, FileRegion):
            length = min(part.length, LAYER_SEND_BYTES)
            content: bytes | memoryview = os.pread(part.descriptor, length, part.position)
            if not content:
                return 0
        else:
            content = memoryview(part)[:LAYER_SEND_BYTES]
        try:
            return self._bytes.send(content)
        except WantsRead:
            self._io.write_wants_read = True
            raise

    def _wait_to_write(self) -> None:
        """Watch the socket for writability, unless the layer must read before it can write."""
        # A write that waits for a readable socket is retried after the next read.
        if not self._io.write_wants_read:
            super()._wait_to_write()

    def overdue(self, now_ms: int) -> str | None:
        """Return the reason to close the connection for a missed deadline, None without one.

        A handshake must end within HALF_FRAME_DEADLINE_MS.
        """
        if self._pauses & PauseReason.TLS:
            is_late = now_ms - self._io.began_ms > HALF_FRAME_DEADLINE_MS
            return "its handshake does not end" if is_late else None
        return super().overdue(now_ms)

    def _close_socket(self) -> None:
        """Close the socket, and stop watching it for the handshake."""
        if self._pauses & PauseReason.TLS:
            # The handshake reads while the connection is paused.
            self._network.loop.unwatch_readable(self._descriptor)
        self._bytes.close()
        self._io.layer = None


class LayeredConnection(LayeredBytes):
    """An accepted connection with a layer between socket and frames."""

    __slots__ = ("_io",)

    def __init__(
        self,
        network: SharedConnectionState,
        origin: ConnectionOrigin,
        sock: socket.socket,
        peer: str,
        layer_of: LayerOf,
    ) -> None:
        """Create a connection with a layer over `sock`; raises the errors of `layer_of`."""
        super().__init__(network, origin, sock, peer)
        #: No frames are read before the layer is open.
        self._pauses = int(PauseReason.TLS)
        self._io = LayerIo(self.last_active_ms)
        self._io.layer = layer_of(sock)
