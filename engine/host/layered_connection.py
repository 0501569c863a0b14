"""A connection whose bytes pass through a layer such as TLS; it frames like any other connection.

```
start ── handshake, paused for TLS ──> frames; file regions are read and sent like other bytes
```

Frames sent before the handshake is over are queued and leave after it.
"""

from __future__ import annotations

import os
import socket

from engine.host.ports import FileRegion, PauseReason
from engine.host.real_connection import ConnectionOrigin, RealConnection, Switchboard
from engine.host.stream_layer import LayerOf, WantsRead, WantsWrite
from engine.limits import HALF_FRAME_DEADLINE_MS, LAYER_SEND_BYTES


class LayeredConnection(RealConnection):
    """A connection with a layer between socket and frames."""

    __slots__ = ("_began_ms", "_layer", "_read_wants_write", "_reads_on", "_write_wants_read")

    def __init__(
        self,
        network: Switchboard,
        origin: ConnectionOrigin,
        sock: socket.socket,
        peer: str,
        layer_of: LayerOf,
    ) -> None:
        """Put a layer above a socket; raises the errors of `layer_of`."""
        super().__init__(network, origin, sock, peer)
        self._layer = layer_of(sock)
        self._pauses = int(PauseReason.TLS)
        self._began_ms = self.last_active_ms
        # Whether a read of bytes that the layer has buffered is scheduled.
        self._reads_on = False
        # Set when a read of the layer waits for a writable socket, or a write for a readable one.
        self._read_wants_write = False
        self._write_wants_read = False

    def start(self) -> None:
        """Begin the handshake."""
        self._network.loop.watch_readable(self._descriptor, self._shake)
        self._shake()

    def _shake(self) -> None:
        try:
            self._layer.handshake()
        except BlockingIOError as want:
            if isinstance(want, WantsWrite) and not self._waits_to_write:
                self._waits_to_write = True
                self._network.loop.watch_writable(self._descriptor, self._shake)
            return
        except OSError as error:
            self._origin.on_refused(self.peer, f"handshake failed: {error}")
            self.close("handshake failed")
            return
        loop = self._network.loop
        loop.unwatch_readable(self._descriptor)
        if self._waits_to_write:
            self._waits_to_write = False
            loop.unwatch_writable(self._descriptor)
        self.last_active_ms = self._network.clock.monotonic_ms()
        self.resume(PauseReason.TLS)
        self._read_on_soon()
        self.flush()

    def _readable(self) -> None:
        super()._readable()
        self._read_on_soon()

    def _read_on_soon(self) -> None:
        """Schedule a read of the bytes that the layer has buffered: the socket reports none."""
        if not self._reads_on and not self.is_closed and self._layer.has_more():
            self._reads_on = True
            self._network.loop.call_soon(self._go_on_reading)

    def _go_on_reading(self) -> None:
        self._reads_on = False
        if not self._pauses and not self.is_closed:
            self._readable()

    def _watch(self) -> None:
        super()._watch()
        self._read_on_soon()

    def _receive(self, buffer: memoryview, behind: memoryview | None = None) -> int:
        try:
            size = self._layer.recv_into(buffer)
        except BlockingIOError as want:
            if isinstance(want, WantsWrite):
                self._read_wants_write = True
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
            self._layer.flush()
        except BlockingIOError:
            self._wait_to_write()
            return
        except OSError as error:
            self.close(error.strerror or "connection lost")
            return
        if self._read_wants_write:
            self._read_wants_write = False
            self._network.loop.call_soon(self._go_on_reading)

    def _write_some(self) -> int:
        self._write_wants_read = False
        part = self._queue[0]
        if isinstance(part, FileRegion):
            length = min(part.length, LAYER_SEND_BYTES)
            content: bytes | memoryview = os.pread(part.descriptor, length, part.position)
            if not content:
                return 0
        else:
            content = memoryview(part)[:LAYER_SEND_BYTES]
        try:
            return self._layer.send(content)
        except WantsRead:
            self._write_wants_read = True
            raise

    def _wait_to_write(self) -> None:
        # A write that waits for a readable socket is retried after the next read.
        if not self._write_wants_read:
            super()._wait_to_write()

    def overdue(self, now_ms: int) -> str | None:
        """Return why the connection has waited too long for something, None if it has not."""
        if self._pauses & PauseReason.TLS:
            is_late = now_ms - self._began_ms > HALF_FRAME_DEADLINE_MS
            return "its handshake does not end" if is_late else None
        return super().overdue(now_ms)

    def _close_socket(self) -> None:
        if self._pauses & PauseReason.TLS:
            # The handshake reads while the connection is paused.
            self._network.loop.unwatch_readable(self._descriptor)
        self._layer.close()
