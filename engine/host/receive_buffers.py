"""Receive buffers of a broker's connections, with a bound on their total size.

A connection without an unfinished frame reads into one shared buffer. With an unfinished frame it
has a buffer of its own. A few buffers are kept for the next frames, because memory used recently
costs far less than new memory (a page fault per 4 KiB).

A frame whose largest size is known from the start, as that of a client before it has authenticated,
gets none of those kept. Its buffer is of whole pages outside the heap: its end leaves no gaps
there, which would add up with the number of such clients.

All unfinished frames together have a bound. Beyond it:

1. connections are read in small pieces, so that small requests are still served;
2. connections with a large unfinished frame wait;
3. one of them at a time continues beyond the bound, so that frames are completed. It is closed
   like any other when it sends nothing.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Protocol

from engine.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS_KEPT

_OWN_BYTES_MIN = 4096
#: A mapping below this size costs more than the gap that a buffer of the heap leaves.
_MAPPED_BYTES_MIN = 1 << 16


class WaitingReader(Protocol):
    """A connection that may have to wait for buffer room."""

    def resume_reading(self) -> bool:
        """Read again after the wait; return False if the connection is closed."""


class ReceiveBuffers:
    """The receive buffers of one broker; see the module's docstring."""

    def __init__(self, in_flight_bytes_max: int) -> None:
        """Create buffers; those of connections are bounded by `in_flight_bytes_max`, a variable."""
        #: The buffer for reads of connections without an unfinished frame.
        self.shared = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.in_flight_bytes_max = in_flight_bytes_max
        #: The total size of the connections' own buffers.
        self.in_flight_bytes = 0
        #: Buffers of completed frames for reuse, the most recently used last.
        self._spare: list[memoryview] = []
        #: The one connection that may finish its frame although the buffers exceed the bound. None
        #: without one.
        self._turn: WaitingReader | None = None
        #: Connections that wait for room below the bound, or for `_turn`.
        self._waiting: deque[WaitingReader] = deque()

    @property
    def is_full(self) -> bool:
        """Return True if unfinished frames use up the bound."""
        return self.in_flight_bytes >= self.in_flight_bytes_max

    def take_buffer(self, size: int, enough: int | None = None) -> memoryview:
        """Return a buffer of at least `size` bytes; a new one has at most twice as many.

        Its size counts as in flight until `release`. `enough` is the largest size that will ever be
        needed, None if unknown: the buffer is then new, and at most one page larger.
        """
        if enough is not None:
            return self._create_pages(size, enough)
        # Beyond the bound, a small remainder does not get a large spare buffer.
        spare = [] if self.is_full else self._spare
        while spare:
            buffer = spare.pop()
            if len(buffer) >= size:
                break
            # Frames have grown: the smaller spare buffers are useless.
        else:
            buffer = memoryview(bytearray(_grown_bytes(size)))
        self.in_flight_bytes += len(buffer)
        return buffer

    def _create_pages(self, size: int, enough: int) -> memoryview:
        """Return a new buffer of complete pages for `size` bytes, at most `enough` rounded up."""
        new_bytes = min(_grown_bytes(size), -(-enough // _OWN_BYTES_MIN) * _OWN_BYTES_MIN)
        self.in_flight_bytes += new_bytes
        if new_bytes < _MAPPED_BYTES_MIN:
            return memoryview(bytearray(new_bytes))
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        return memoryview(mmap.mmap(-1, new_bytes, flags=flags))

    def release(self, buffer: memoryview) -> None:
        """Release a connection's buffer, which may be kept for reuse; wake waiting connections."""
        self.in_flight_bytes -= len(buffer)
        spare = self._spare
        if (
            0 < len(buffer) <= RECEIVE_BUFFER_BYTES
            and len(spare) < RECEIVE_BUFFERS_KEPT
            and isinstance(buffer.obj, bytearray)
        ):
            spare.append(buffer)
        if self._waiting:
            self._wake_connections()

    def has_room_for(self, connection: WaitingReader, size: int) -> bool:
        """Return True if a connection may take a buffer of `size`; otherwise it is woken later.

        The first connection beyond the bound takes the turn, and only that one may exceed the
        bound: otherwise connections with incomplete frames could wait for each other for ever.
        """
        if self.in_flight_bytes + size <= self.in_flight_bytes_max:
            return True
        if self._turn is None:
            self._turn = connection
        if self._turn is connection:
            return True
        self._waiting.append(connection)
        return False

    def end_turn(self, connection: WaitingReader) -> None:
        """End a connection's turn beyond the bound: its frame is complete, or was dropped."""
        if self._turn is connection:
            self._turn = None
            self._wake_connections()

    def _wake_connections(self) -> None:
        """Let waiting connections read again: all while there is room, else one at a time."""
        while self._waiting and (self._turn is None or not self.is_full):
            # If the bound is used up, wake only one: it takes the turn with its next bytes.
            if self._waiting.popleft().resume_reading() and self._turn is None and self.is_full:
                return


def _grown_bytes(size: int) -> int:
    """Return the size of a buffer for `size` bytes that may grow: the next power of two."""
    return max(1 << (size - 1).bit_length(), _OWN_BYTES_MIN)
