"""One TCP connection: a raw non-blocking socket on the event loop, frames in, parts out.

Receiving, per turn and connection:

1. Read into one buffer shared by all connections; complete frames are passed to `on_frame` in
   place, without a copy.
2. The start of an unfinished frame is copied into a buffer of the connection. The rest of the
   frame is received directly after it, and bytes after the frame go to the shared buffer again:
   each byte is copied at most once. The connection's buffer doubles when it is full: a frame
   length alone reserves no memory.
3. A frame length above the limit, or below 0, closes the connection before the frame is read.

Each connection has a share of a turn, in frames and milliseconds. Frames beyond it stay in the
connection's buffer for the next turn, after all other readable connections, and nothing is read
meanwhile: however much one peer sends, others wait only for its share.

All unfinished frames together have a bound, beyond which connections wait (`receive_buffers.py`).

Sending: parts are queued per connection. Responses to the requests of one read are written directly
after it, later ones at the end of the loop's turn; file regions are sent with sendfile.

Queued bytes in memory have a bound (`unsent_bytes_max`): one response may exceed it, and the next
one closes the connection. File regions use no memory and are not counted.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import Protocol

from engine.host.event_loop import EventLoop
from engine.host.handshake_turns import HandshakeTurns
from engine.host.ports import (
    Clock,
    ConnectionLimits,
    FileRegion,
    FrameBound,
    PauseReason,
    SendPart,
)
from engine.host.receive_buffers import ReceiveBuffers
from engine.limits import (
    FRAMES_PER_TURN_MAX,
    HALF_FRAME_DEADLINE_MS,
    IOV_BUFFERS_MAX,
    JOINED_SEND_BYTES_MAX,
    REGION_COST_BYTES,
    SCATTERED_BYTES_MAX,
    SMALL_READ_BYTES,
    TURN_MS_MAX,
    UNSENT_DEADLINE_MS,
)

_LENGTH = struct.Struct(">i")
_length_at = _LENGTH.unpack_from
_length_bytes = _LENGTH.pack
_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR)
_NOTHING = memoryview(b"")
# MSG_MORE: delay a short head until the file region that follows it.
_MORE = getattr(socket, "MSG_MORE", 0)


_MEMORY = int(PauseReason.MEMORY)


class ConnectionOrigin(Protocol):
    """The owner of a connection: a listener, or the network for outgoing connections."""

    limits: ConnectionLimits
    buffers: ReceiveBuffers
    on_refused: Callable[[str, str], None]

    def forget(self, connection: RealConnection) -> None:
        """Remove a closed connection from the connections of this owner."""


class SharedConnectionState(Protocol):
    """State shared by all connections of a process: `real_network.RealNetwork`."""

    loop: EventLoop
    clock: Clock
    handshakes: HandshakeTurns

    def flush_later(self, connection: RealConnection) -> None:
        """Flush a connection at the end of the loop's turn."""

    def forget(self, connection: RealConnection) -> None:
        """Remove a closed connection from the connections of the process."""


def _drop_frame(_frame: memoryview) -> None:
    """Ignore a frame: the owner has not set `on_frame` yet, or the connection is closed."""
    return


def _drop_reason(_reason: str) -> None:
    """Ignore the end: the owner has not set `on_close` yet, or was called already."""
    return


class RealConnection:
    """One socket with its frames; see the module's docstring."""

    __slots__ = (
        "_bound",
        "_descriptor",
        "_have",
        "_is_dirty",
        "_is_in_line",
        "_network",
        "_on_sent",
        "_origin",
        "_own",
        "_passed_bytes",
        "_passed_end",
        "_pauses",
        "_queue",
        "_queued_bytes",
        "_reading_since_ms",
        "_region_bytes",
        "_region_count",
        "_sent_bytes",
        "_sock",
        "_unsent_bytes_max",
        "_unsent_since_ms",
        "_waits_to_write",
        "is_closed",
        "last_active_ms",
        "on_close",
        "on_frame",
        "peer",
    )

    def __init__(
        self,
        network: SharedConnectionState,
        origin: ConnectionOrigin,
        sock: socket.socket | None,
        peer: str,
    ) -> None:
        """Create a connection on `sock`; None: call `attach` before anything is read or written."""
        self.peer = peer
        self.on_frame: Callable[[memoryview], None] = _drop_frame
        self.on_close: Callable[[str], None] = _drop_reason
        self._network = network
        self._origin = origin
        if sock is not None:
            self.attach(sock)
        #: Bytes of an unfinished frame, or those received before a pause: `_own[:_have]`.
        self._own = _NOTHING
        self._have = 0
        #: The connection's own bound on frames, None for that of the listener.
        self._bound: FrameBound | None = None
        #: Parts of responses that the socket has not accepted yet.
        self._queue: deque[SendPart] = deque()
        #: Number and bytes of the file regions in the queue: they hold files open, and no memory.
        self._region_count = 0
        self._region_bytes = 0
        #: Totals since the start of the connection; their difference is the size of the queue.
        self._queued_bytes = 0
        self._sent_bytes = 0
        self._unsent_bytes_max = origin.limits.unsent_bytes_max
        #: The response that is allowed beyond the bound: its bytes in memory, and the total of sent
        #: bytes at which it is sent. Until then it does not count.
        self._passed_bytes = 0
        self._passed_end = 0
        #: Callbacks, each with the total of sent bytes at which it is due.
        self._on_sent: deque[tuple[int, Callable[[], None]]] = deque()
        #: Whether a flush will follow in this turn, so that `send` need not schedule one.
        self._is_dirty = False
        #: Whether the socket is full, and watched until it is writable.
        self._waits_to_write = False
        # Whether a turn for the frames in the own buffer is scheduled.
        self._is_in_line = False
        #: The bits of the reasons (`PauseReason`) for which nothing is read.
        self._pauses = 0
        self.is_closed = False
        #: When bytes were last received (monotonic), for connections.max.idle.ms.
        self.last_active_ms = network.clock.monotonic_ms()
        #: When the last pause, or wait for a turn, ended: the deadline of an unfinished frame
        #: counts from then.
        self._reading_since_ms = 0
        #: When the socket last accepted bytes: the deadline for unsent bytes counts from then.
        self._unsent_since_ms = 0

    def attach(self, sock: socket.socket) -> None:
        """Use this socket from now on, for a connection that had none or whose address failed."""
        self._sock = sock
        self._descriptor = sock.fileno()

    @property
    def kernel_buffer_bytes(self) -> tuple[int, int]:
        """Return the sizes of the kernel's send and receive buffer."""
        return (
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
        )

    def start(self) -> None:
        """Start taking frames, unless `on_connect` has paused the connection."""
        if not self._pauses:
            self._watch()

    def _on_readable(self) -> None:
        """Read once, and write all immediate responses with one call, in the same turn."""
        if self._is_in_line:
            return
        was_dirty, self._is_dirty = self._is_dirty, True
        try:
            if self._have:
                self._read_unfinished()
            else:
                buffers = self._origin.buffers
                shared = buffers.shared
                if buffers.in_flight_bytes >= buffers.in_flight_bytes_max:
                    shared = shared[:SMALL_READ_BYTES]
                size = self._receive(shared)
                if size > 0:
                    self._pass_frames(shared, size)
        except BaseException:
            self._fail()
            raise
        self._is_dirty = was_dirty
        if self._queue and not self._waits_to_write:
            self.flush()

    def _pass_frames(self, shared: memoryview, size: int) -> None:
        """Handle the complete frames in the shared buffer; copy an incomplete one to an own buffer.

        The next connection that receives bytes overwrites the shared buffer.
        """
        position = self._pass_complete_frames(shared, size, self.last_active_ms)
        if position < size and not self.is_closed:
            # The shared buffer is reused by another connection at once.
            remaining = size - position
            enough = (
                None if self._bound is None else self._bounded_bytes(shared, position, remaining)
            )
            own = self._own = self._origin.buffers.take_buffer(remaining, enough)
            own[:remaining] = shared[position:size]
            self._have = remaining

    def _bounded_bytes(self, shared: memoryview, position: int, remaining: int) -> int:
        """Return the buffer size for an unauthenticated client: its frame, or the received bytes.

        The frame begins at `position` of the shared buffer, with `remaining` bytes received.
        """
        length = _length_at(shared, position)[0] if remaining >= _LENGTH.size else 0
        return max(_LENGTH.size + int(length), remaining)

    def _receive(self, buffer: memoryview, overflow: memoryview | None = None) -> int:
        """Return the number of bytes read; 0 for none yet, −1 if the connection is closed.

        Bytes beyond `buffer` go into `overflow`.
        """
        try:
            if overflow is None:
                size = self._sock.recv_into(buffer)
            else:
                size, *_ = self._sock.recvmsg_into((buffer, overflow))
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

    def _pass_complete_frames(self, buffer: memoryview, size: int, began_ms: int) -> int:
        """Pass on the complete frames in the buffer, up to the share of a turn begun at `began_ms`.

        Returns the start of the first frame that was not passed on.
        """
        position = 0
        bound = self._bound
        longest = self._origin.limits.frame_bytes_max if bound is None else bound.bytes_max
        on_frame, now_ms = self.on_frame, self._network.clock.monotonic_ms
        over_ms = began_ms + TURN_MS_MAX
        for passed_on in count():
            start = position + 4
            if start > size or self._pauses or self.is_closed:
                break
            (length,) = _length_at(buffer, position)
            if not 0 <= length <= longest and not self._check_length(length):
                return size
            end = start + length
            if end > size:
                break
            if passed_on and (passed_on == FRAMES_PER_TURN_MAX or now_ms() >= over_ms):
                self._queue_turn()
                break
            on_frame(buffer[start:end])
            position = end
        return position

    def _check_length(self, length: int) -> bool:
        """Return True if a frame's length is within the current bound; else refuse the frame.

        The bound may have been removed since the frames of this turn began.
        """
        bound = self._bound
        longest = self._origin.limits.frame_bytes_max if bound is None else bound.bytes_max
        if 0 <= length <= longest:
            return True
        if bound is None:
            self.refuse(f"a frame of {length} bytes")
        else:
            bound.on_larger(length)
        return False

    def bound_frames(self, bound: FrameBound | None) -> None:
        """Set a size limit for frames below that of the limits; see `Connection.bound_frames`."""
        self._bound = bound

    def peer_certificate(self) -> bytes | None:
        """Return None: nothing is encrypted."""
        return None

    def _queue_turn(self) -> None:
        """Continue with the own buffer on the loop's next turn; nothing is read until then.

        So that a connection with many frames does not delay the others.
        """
        if not self._is_in_line:
            self._is_in_line = True
            self._network.loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        """Pass on frames received earlier, and write their responses with one call."""
        self._is_in_line = False
        if self._pauses or self.is_closed:
            return
        # The wait for the turn is not counted against the peer's deadline.
        self._reading_since_ms = self._network.clock.monotonic_ms()
        was_dirty, self._is_dirty = self._is_dirty, True
        try:
            self._pass_own_frames()
        except BaseException:
            self._fail()
            raise
        self._is_dirty = was_dirty
        if self._queue and not self._waits_to_write:
            self.flush()

    def _fail(self) -> None:
        """Close after the owner raised: its frames must not be passed on again."""
        self.close("a request broke a rule of the broker")

    def _read_unfinished(self) -> None:
        """Receive the rest of an unfinished frame into the connection's own buffer."""
        have = self._have
        if have < 4:
            size = self._receive(self._own[have:])
            if size > 0:
                self._have = have + size
                self._pass_own_frames()
            return
        (length,) = _length_at(self._own)
        wanted = 4 + length
        if have >= wanted:
            # A pause delayed the frame, and ended in this turn.
            self._pass_own_frames()
            return
        buffers = self._origin.buffers
        if have == len(self._own) and not buffers.has_room_for(self, have):
            self.pause(PauseReason.MEMORY)
            return
        # An unauthenticated client gets a buffer no larger than its frame.
        own = self._enlarge_own(have + 1, None if self._bound is None else wanted)
        end = min(wanted, len(own))
        shared = buffers.shared
        is_last_part = end == wanted and end - have < SCATTERED_BYTES_MAX and not buffers.is_full
        size = self._receive(own[have:end], shared if is_last_part else None)
        if size <= 0:
            return
        overflow_size = max(have + size - end, 0)
        self._have = have + size - overflow_size
        if self._have == wanted:
            self._pass_own_frames()
            if overflow_size and not self.is_closed:
                self._pass_later_bytes(shared, overflow_size)

    def _pass_later_bytes(self, shared: memoryview, size: int) -> None:
        """Take `size` bytes of the shared buffer, received after a frame of the own buffer."""
        have = self._have
        if not have:
            self._pass_frames(shared, size)
            return
        # The connection was paused, so that frame is still in the buffer.
        own = self._enlarge_own(have + size)
        own[have : have + size] = shared[:size]
        self._have = have + size

    def _enlarge_own(self, size: int, enough: int | None = None) -> memoryview:
        """Return the connection's own buffer, enlarged to `size` bytes if needed.

        `enough` is as in `ReceiveBuffers.take`.
        """
        own = self._own
        if len(own) < size:
            self._own = self._origin.buffers.take_buffer(size, enough)
            self._own[: self._have] = own[: self._have]
            self._origin.buffers.release(own)
        return self._own

    def _pass_own_frames(self) -> None:
        """Pass on the frames in the own buffer, and release it if nothing is left."""
        own, have = self._own, self._have
        if not have:
            return
        position = self._pass_complete_frames(own, have, self._network.clock.monotonic_ms())
        if self.is_closed:
            return
        self._have = remaining = have - position
        if not remaining:
            self._drop_own()
        elif position:
            own[:remaining] = own[position:have]

    def _drop_own(self) -> None:
        """Return the own buffer to the memory that connections share, and end the turn there."""
        own, self._own, self._have = self._own, _NOTHING, 0
        self._origin.buffers.release(own)
        self._origin.buffers.end_turn(self)

    def resume_reading(self) -> bool:
        """Read again after a wait for buffer room; return False if the connection is closed."""
        if self.is_closed:
            return False
        self.resume(PauseReason.MEMORY)
        return True

    def pause(self, reason: PauseReason) -> None:
        """Stop taking frames until every reason is removed."""
        if self.is_closed:
            return
        if not self._pauses:
            self._network.loop.unwatch_readable(self._descriptor)
        self._pauses |= reason

    def resume(self, reason: PauseReason) -> None:
        """Remove one reason for the pause; after the last one, read frames, buffered ones first."""
        if not self._pauses & reason or self.is_closed:
            return
        self._pauses &= ~reason
        if not self._pauses:
            # The pause is not counted against the peer's deadline.
            self._reading_since_ms = self._network.clock.monotonic_ms()
            self._watch()
            self._queue_turn()

    def _watch(self) -> None:
        """Call `_on_readable` whenever the socket has bytes."""
        self._network.loop.watch_readable(self._descriptor, self._on_readable)

    def refuse(self, reason: str) -> None:
        """Close the connection of a peer that broke a limit, and report that."""
        self._origin.on_refused(self.peer, reason)
        self.close(reason)

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame after its length; it is sent after this read, or at the turn's end."""
        if self.is_closed:
            if on_sent is not None:
                on_sent()
            return
        queue = self._queue
        first = parts[0]
        if type(first) is bytes and len(first) <= JOINED_SEND_BYTES_MAX:
            # The common case: the response is one part, or starts with it.
            size = len(first)
            if len(parts) == 1:
                queue.append(_length_bytes(size) + first)
            else:
                following = parts[1:]
                size += self._count_parts(following)
                queue.append(_length_bytes(size) + first)
                queue.extend(following)
        else:
            size = self._count_parts(parts)
            queue.append(_length_bytes(size))
            queue.extend(parts)
        self._queued_bytes = end = self._queued_bytes + size + 4
        if on_sent is not None:
            self._on_sent.append((end, on_sent))
        if end - self._sent_bytes > self._unsent_bytes_max and not self._allow_queueing(end, parts):
            self.refuse(f"{end - self._sent_bytes} unsent bytes")
        elif not self._is_dirty and not self._waits_to_write:
            self._is_dirty = True
            self._network.flush_later(self)

    def _allow_queueing(self, end: int, parts: Sequence[SendPart]) -> bool:
        """Return True if a response may be queued within the bound on unsent bytes.

        The first response that exceeds the bound is recorded and allowed, and does not count until
        it is sent: otherwise a response larger than the bound could never be sent.
        """
        in_regions = self._region_bytes - self._region_count * REGION_COST_BYTES
        unsent_bytes = end - self._sent_bytes - in_regions
        if unsent_bytes <= self._unsent_bytes_max:
            return True
        if self._sent_bytes >= self._passed_end:
            self._passed_bytes = sum(len(part) for part in parts if type(part) is not FileRegion)
            self._passed_end = end
        return unsent_bytes - self._passed_bytes <= self._unsent_bytes_max

    def _count_parts(self, parts: Sequence[SendPart]) -> int:
        """Return the size of the queued parts, and count their file regions."""
        size = 0
        for part in parts:
            if type(part) is FileRegion:
                size += part.length
                self._region_count += 1
                self._region_bytes += part.length
            else:
                size += len(part)
        return size

    def flush(self) -> None:
        """Write the queue as far as the socket accepts it; the other parts once it is writable."""
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
                # The file was truncated meanwhile; the announced bytes cannot be sent any more.
                self.close("a file ended before its region did")
                return
            self._drop_sent(sent)
        if self._waits_to_write and not self.is_closed:
            self._waits_to_write = False
            self._network.loop.unwatch_writable(self._descriptor)

    def _write_some(self) -> int:
        """Write from the front of the queue; returns the bytes that the socket accepted."""
        queue = self._queue
        if self._region_count:
            return self._write_with_regions()
        if self._queued_bytes - self._sent_bytes <= JOINED_SEND_BYTES_MAX:
            return self._sock.send(b"".join(queue))  # type: ignore[arg-type]
        if len(queue) <= IOV_BUFFERS_MAX:
            return self._sock.sendmsg(queue)  # type: ignore[arg-type]
        return self._sock.sendmsg(tuple(islice(queue, IOV_BUFFERS_MAX)))  # type: ignore[arg-type]

    def _write_with_regions(self) -> int:
        """Write parts one by one while the socket accepts each whole; return the bytes written.

        File regions are written by sendfile, which takes one region a call.
        """
        queue = self._queue
        taken = 0
        left = len(queue)
        for part in queue:
            left -= 1
            try:
                if type(part) is FileRegion:
                    descriptor, position, size = part
                    sent = os.sendfile(self._descriptor, descriptor, position, size)
                else:
                    size = len(part)
                    sent = self._sock.send(part, _MORE if left else 0)  # type: ignore[arg-type]
            except OSError as error:
                if taken and error.errno in _AGAIN:
                    break
                raise
            taken += sent
            if sent < size:
                break
        return taken

    def _drop_sent(self, sent: int) -> None:
        """Remove sent bytes from the queue, and call the callbacks that are due."""
        queue = self._queue
        self._sent_bytes += sent
        if self._sent_bytes == self._queued_bytes:
            queue.clear()
            self._region_count = self._region_bytes = 0
        else:
            self._unsent_since_ms = self._network.clock.monotonic_ms()
            while queue:
                part = queue[0]
                is_region = isinstance(part, FileRegion)
                size = part.length if isinstance(part, FileRegion) else len(part)
                if sent < size:
                    if sent:
                        queue[0] = _remainder(part, sent)
                        self._region_bytes -= sent if is_region else 0
                    break
                sent -= size
                if is_region:
                    self._region_count -= 1
                    self._region_bytes -= size
                queue.popleft()
        while self._on_sent:
            end, on_sent = self._on_sent[0]
            if end > self._sent_bytes:
                break
            self._on_sent.popleft()
            on_sent()

    def _wait_to_write(self) -> None:
        """Flush again once the socket is writable; note since when output waits."""
        if not self._waits_to_write:
            self._waits_to_write = True
            self._unsent_since_ms = self._network.clock.monotonic_ms()
            self._network.loop.watch_writable(self._descriptor, self.flush)

    def overdue(self, now_ms: int) -> str | None:
        """Return the reason to close the connection for a missed deadline, None without one.

        Deadlines are those for unsent bytes, an unfinished frame, and an idle connection.
        """
        if self._waits_to_write and now_ms - self._unsent_since_ms > UNSENT_DEADLINE_MS:
            return "it does not read its answers"
        if self._pauses & _MEMORY or self._is_in_line:
            return None
        if self._have and not self._pauses:
            if now_ms - max(self.last_active_ms, self._reading_since_ms) > HALF_FRAME_DEADLINE_MS:
                return "half a frame"
            return None
        idle_ms = self._origin.limits.idle_ms
        return "idle" if 0 < idle_ms < now_ms - self.last_active_ms else None

    def close(self, reason: str) -> None:
        """Close now, dropping bytes that the socket does not accept; `on_close` is called once."""
        if self._is_dirty and not self.is_closed:
            # Responses queued for the turn's end belong to requests before the faulty one.
            self.flush()
        if self.is_closed:
            return
        self.is_closed = True
        loop = self._network.loop
        if not self._pauses:
            loop.unwatch_readable(self._descriptor)
        if self._waits_to_write:
            loop.unwatch_writable(self._descriptor)
        self._close_socket()
        self._queue.clear()
        self._drop_own()
        self._network.forget(self)
        self._origin.forget(self)
        while self._on_sent:
            _, on_sent = self._on_sent.popleft()
            on_sent()
        self.on_close(reason)
        # Breaks the reference cycle with the owner, so that the connection is freed now.
        self.on_frame, self.on_close = _drop_frame, _drop_reason

    def _close_socket(self) -> None:
        """Close the socket; connections with a layer close the layer too."""
        self._sock.close()


def _remainder(part: SendPart, sent: int) -> SendPart:
    """Return the rest of a part after its first `sent` bytes, without a copy."""
    if isinstance(part, FileRegion):
        return FileRegion(part.descriptor, part.position + sent, part.length - sent)
    return memoryview(part)[sent:]
