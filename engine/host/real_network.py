"""TCP on this machine: raw non-blocking sockets on the event loop, frames in, parts out.

Receiving, per turn and connection:

1. Read into one buffer that all connections share; frames that are whole in it are handed on in
   place, without a copy.
2. What is left of an unfinished frame is copied into a buffer of the connection. The rest of the
   frame is received right behind it, and what follows the frame into the shared buffer again: each
   byte is copied once at most. That buffer doubles when it is full: a length alone reserves
   nothing.
3. A frame above the limit, or below 0, closes the connection before anything is read for it.

A connection has a buffer only in the midst of a frame. A few are kept by the network for the next
frames, for memory that was just used costs far less than new memory (a page fault for each 4 KiB).

Sending: parts are queued per connection and written once at the end of the loop's turn, so that
the answers to pipelined requests leave together; file regions go by sendfile.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.event_loop import EventLoop
from engine.host.ports import Clock, Connection, FileRegion, SendPart
from engine.limits import (
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    FRAME_BYTES_MAX,
    HALF_FRAME_DEADLINE_MS,
    IOV_BUFFERS_MAX,
    JOINED_SEND_BYTES_MAX,
    RECEIVE_BUFFER_BYTES,
    RECEIVE_BUFFERS_KEPT,
    SCATTERED_BYTES_MAX,
    UNSENT_BYTES_MAX,
    UNSENT_DEADLINE_MS,
)

_LENGTH = struct.Struct(">i")
_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
_NOTHING = memoryview(b"")
_OWN_BYTES_MIN = 4096
_SWEEP_MS = 5000
_BACKLOG = 512
# MSG_MORE: hold a short head back until the file behind it follows.
_MORE = getattr(socket, "MSG_MORE", 0)


def local_host_name() -> str:
    """Return the name by which other hosts know this one, as far as it knows itself."""
    return socket.getfqdn()


class NetworkLimits(NamedTuple):
    """Bounds of one network; `idle_ms` 0 never closes an idle connection.

    The kernel's buffers are those of accepted connections; below 0 the kernel sizes them itself.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    connections_max: int = CONNECTIONS_MAX
    connections_per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX
    idle_ms: int = 600_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1


class CannotListen(StorageError):
    """An address could not be bound."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host}:{port}: {reason}")
        self.hint = "choose another port, or stop what listens there"
        self.host = host
        self.port = port


class RealConnection:
    """One socket; see the module's head."""

    def __init__(self, network: RealNetwork, sock: socket.socket, peer: str) -> None:
        self.peer = peer
        self.on_frame: Callable[[memoryview], None] = lambda _frame: None
        self.on_close: Callable[[str], None] = lambda _reason: None
        self._network = network
        self._sock = sock
        self._descriptor = sock.fileno()
        # The bytes of an unfinished frame, or those a pause held back: `_own[:_have]`.
        self._own = _NOTHING
        self._have = 0
        self._queue: deque[SendPart] = deque()
        # Counted from the start of the connection; the difference is what is queued.
        self._queued_bytes = 0
        self._sent_bytes = 0
        # Who is told when so many bytes have been sent.
        self._on_sent: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_dirty = False
        self._waits_to_write = False
        self._is_paused = False
        self.is_closed = False
        self.last_active_ms = network.clock.monotonic_ms()
        self._partial_since_ms = 0
        self._unsent_since_ms = 0

    @property
    def kernel_buffer_bytes(self) -> tuple[int, int]:
        """Return the sizes of the kernel's buffers, for sending and for receiving."""
        return (
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        )

    def start(self) -> None:
        """Begin to take frames."""
        self._network.loop.watch_readable(self._descriptor, self._readable)

    def _readable(self) -> None:
        if self._have:
            self._read_on()
            return
        shared = self._network.receive_buffer
        size = self._receive(shared)
        if size > 0:
            self._take(shared, size)

    def _take(self, shared: memoryview, size: int) -> None:
        """Hand on the frames in the shared buffer, and keep what is left."""
        position = self._frames(shared, size)
        if position < size and not self.is_closed:
            # The shared buffer is another connection's in a moment.
            rest = size - position
            own = self._own = self._network.take_buffer(rest)
            own[:rest] = shared[position:size]
            self._have = rest
            self._partial_since_ms = self.last_active_ms

    def _receive(self, buffer: memoryview, behind: memoryview | None = None) -> int:
        """Return the bytes read; 0 for nothing yet, −1 when the connection is gone.

        What the buffer has no room for goes into the one behind it.
        """
        try:
            if behind is None:
                size = self._sock.recv_into(buffer)
            else:
                size = self._sock.recvmsg_into((buffer, behind))[0]
        except OSError as error:
            if error.errno in _AGAIN:
                return 0
            self.close(error.strerror or "connection lost")
            return -1
        if size == 0:
            self.close("closed by the peer")
            return -1
        self.last_active_ms = self._network.clock.monotonic_ms()
        return size

    def _frames(self, buffer: memoryview, size: int) -> int:
        """Hand on every whole frame in the buffer; returns where the unfinished one starts."""
        position = 0
        while size - position >= 4 and not self._is_paused and not self.is_closed:
            (length,) = _LENGTH.unpack_from(buffer, position)
            if not 0 <= length <= self._network.limits.frame_bytes_max:
                self._network.refuse(self, f"a frame of {length} bytes")
                return size
            end = position + 4 + length
            if end > size:
                break
            self.on_frame(buffer[position + 4 : end])
            position = end
        return position

    def _read_on(self) -> None:
        """Go on with an unfinished frame in the connection's own buffer."""
        have = self._have
        if have < 4:
            size = self._receive(self._own[have:])
            if size > 0:
                self._have = have + size
                self._take_own()
            return
        wanted = 4 + _LENGTH.unpack_from(self._own)[0]
        if have >= wanted:
            # A pause held it back, and has ended in this turn.
            self._take_own()
            return
        own = self._room_for(have + 1)
        end = min(wanted, len(own))
        shared = self._network.receive_buffer
        is_last_part = end == wanted and end - have < SCATTERED_BYTES_MAX
        size = self._receive(own[have:end], shared if is_last_part else None)
        if size <= 0:
            return
        behind = max(have + size - end, 0)
        self._have = have + size - behind
        if self._have == wanted:
            self._take_own()
            if behind and not self.is_closed:
                self._take_behind(shared, behind)

    def _take_behind(self, shared: memoryview, size: int) -> None:
        """Take what came behind a frame of the own buffer."""
        have = self._have
        if not have:
            self._take(shared, size)
            return
        # That frame is still there: the connection was paused.
        own = self._room_for(have + size)
        own[have : have + size] = shared[:size]
        self._have = have + size

    def _room_for(self, size: int) -> memoryview:
        """Return the own buffer, or a larger one with its bytes that has room for so many."""
        own = self._own
        if len(own) < size:
            self._own = self._network.take_buffer(size)
            self._own[: self._have] = own[: self._have]
            self._network.give_back(own)
        return self._own

    def _take_own(self) -> None:
        """Hand on the frames in the own buffer, and let it go when nothing is left."""
        own, have = self._own, self._have
        if not have:
            return
        position = self._frames(own, have)
        if self.is_closed:
            return
        self._have = rest = have - position
        if not rest:
            self._drop_own()
        elif position:
            own[:rest] = own[position:have]
            self._partial_since_ms = self.last_active_ms

    def _drop_own(self) -> None:
        own, self._own, self._have = self._own, _NOTHING, 0
        self._network.give_back(own)

    def pause(self) -> None:
        """Take no more frames until `resume`."""
        if not self._is_paused and not self.is_closed:
            self._is_paused = True
            self._network.loop.unwatch_readable(self._descriptor)

    def resume(self) -> None:
        """Take frames again, at once those that have arrived."""
        if not self._is_paused or self.is_closed:
            return
        self._is_paused = False
        self._network.loop.watch_readable(self._descriptor, self._readable)
        self._network.loop.call_soon(self._take_own)

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame behind its length; it leaves at the end of the loop's turn."""
        if self.is_closed:
            if on_sent is not None:
                on_sent()
            return
        size = 0
        for part in parts:
            size += part.length if isinstance(part, FileRegion) else len(part)
        queue = self._queue
        if not queue:
            self._unsent_since_ms = self._network.clock.monotonic_ms()
        queue.append(_LENGTH.pack(size))
        queue.extend(parts)
        self._queued_bytes = end = self._queued_bytes + size + 4
        if on_sent is not None:
            self._on_sent.append((end, on_sent))
        if end - self._sent_bytes > UNSENT_BYTES_MAX:
            self._network.refuse(self, f"{end - self._sent_bytes} unsent bytes")
        elif not self._is_dirty and not self._waits_to_write:
            self._is_dirty = True
            self._network.flush_later(self)

    def flush(self) -> None:
        """Write what is queued as far as the socket takes it."""
        self._is_dirty = False
        while self._queue and not self.is_closed:
            try:
                sent = self._write_some()
            except OSError as error:
                if error.errno in _AGAIN:
                    self._wait_to_write()
                else:
                    self.close(error.strerror or "connection lost")
                return
            if sent == 0:
                # It was truncated meanwhile; what is promised cannot be sent any more.
                self.close("a file ended before its region did")
                return
            self._drop_sent(sent)
        if self._waits_to_write and not self.is_closed:
            self._waits_to_write = False
            self._network.loop.unwatch_writable(self._descriptor)

    def _write_some(self) -> int:
        """Write from the queue's front; returns the bytes that the socket took."""
        queue = self._queue
        first = queue[0]
        if isinstance(first, FileRegion):
            return os.sendfile(self._descriptor, first.descriptor, first.position, first.length)
        buffers: list[bytes | bytearray | memoryview] = []
        size = 0
        for part in queue:
            if isinstance(part, FileRegion):
                return self._sock.sendmsg(buffers, (), _MORE)
            if len(buffers) == IOV_BUFFERS_MAX:
                break
            buffers.append(part)
            size += len(part)
        if size <= JOINED_SEND_BYTES_MAX:
            return self._sock.send(b"".join(buffers))
        return self._sock.sendmsg(buffers)

    def _drop_sent(self, sent: int) -> None:
        """Take what has been sent off the queue, and tell who waits for that."""
        queue = self._queue
        self._sent_bytes += sent
        if self._sent_bytes == self._queued_bytes:
            queue.clear()
        else:
            self._unsent_since_ms = self._network.clock.monotonic_ms()
            while queue:
                part = queue[0]
                size = part.length if isinstance(part, FileRegion) else len(part)
                if sent < size:
                    if sent:
                        queue[0] = _rest_of(part, sent)
                    break
                sent -= size
                queue.popleft()
        while self._on_sent and self._on_sent[0][0] <= self._sent_bytes:
            self._on_sent.popleft()[1]()

    def _wait_to_write(self) -> None:
        if not self._waits_to_write:
            self._waits_to_write = True
            self._network.loop.watch_writable(self._descriptor, self.flush)

    def overdue(self, now_ms: int) -> str | None:
        """Return why the connection has waited too long for something, None if it has not."""
        if self._queue and now_ms - self._unsent_since_ms > UNSENT_DEADLINE_MS:
            return "it does not read its answers"
        if self._have and not self._is_paused:
            if now_ms - self._partial_since_ms > HALF_FRAME_DEADLINE_MS:
                return "half a frame"
            return None
        idle_ms = self._network.limits.idle_ms
        return "idle" if 0 < idle_ms < now_ms - self.last_active_ms else None

    def close(self, reason: str) -> None:
        """Close now, dropping what is unsent; `on_close` is called once."""
        if self.is_closed:
            return
        self.is_closed = True
        loop = self._network.loop
        if not self._is_paused:
            loop.unwatch_readable(self._descriptor)
        if self._waits_to_write:
            loop.unwatch_writable(self._descriptor)
        self._sock.close()
        self._queue.clear()
        self._drop_own()
        self._network.forget(self)
        while self._on_sent:
            self._on_sent.popleft()[1]()
        self.on_close(reason)


def _rest_of(part: SendPart, sent: int) -> SendPart:
    if isinstance(part, FileRegion):
        return FileRegion(part.descriptor, part.position + sent, part.length - sent)
    return memoryview(part)[sent:]


class RealNetwork:
    """Listeners and connections of one process, on one loop."""

    def __init__(self, loop: EventLoop, clock: Clock, limits: NetworkLimits | None = None) -> None:
        self.loop = loop
        self.clock = clock
        self.limits = limits or NetworkLimits()
        self.receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        # Buffers of frames that have come to their end, the one that was used last behind.
        self._spare_buffers: list[memoryview] = []
        #: Told of every connection that is refused or cut, for counters and the log.
        self.on_refused: Callable[[str, str], None] = lambda _peer, _reason: None
        self._listeners: list[socket.socket] = []
        self._connections: dict[RealConnection, str] = {}
        self._per_address: dict[str, int] = {}
        self._dirty: list[RealConnection] = []
        self._cancel_sweep: Callable[[], None] | None = None

    def listen(self, host: str, port: int, on_connect: Callable[[Connection], None]) -> int:
        """Accept connections; returns the port. Raises CannotListen."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise CannotListen(host, port, error.strerror or str(error)) from error
        listener.setblocking(False)
        self._listeners.append(listener)
        self.loop.watch_readable(listener.fileno(), lambda: self._accept(listener, on_connect))
        self._sweep_later()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket, on_connect: Callable[[Connection], None]) -> None:
        for _ in range(_BACKLOG):
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

    def take_buffer(self, size: int) -> memoryview:
        """Return a buffer with room for so many bytes, or for up to twice as many if it is new."""
        spare = self._spare_buffers
        while spare:
            buffer = spare.pop()
            if len(buffer) >= size:
                return buffer
            # Frames are larger than they were: smaller buffers are of no use.
        return memoryview(bytearray(max(1 << (size - 1).bit_length(), _OWN_BYTES_MIN)))

    def give_back(self, buffer: memoryview) -> None:
        """Take a connection's buffer back; a few are kept."""
        spare = self._spare_buffers
        if 0 < len(buffer) <= RECEIVE_BUFFER_BYTES and len(spare) < RECEIVE_BUFFERS_KEPT:
            spare.append(buffer)

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
