"""What the connections of a broker receive into, and how much that may be in all.

Every read of a connection without an unfinished frame goes into one shared buffer. In the midst of
a frame a connection has a buffer of its own. A few are kept for the next frames, for memory that
was just used costs far less than new memory (a page fault for each 4 KiB).

All unfinished frames together have a bound. Beyond it

1. connections are read in small pieces, so that small requests are served on;
2. those in the midst of a large frame wait;
3. one of them at a time goes on beyond the bound, so that frames come to their end. It is cut
   like any other when it sends nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from engine.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS_KEPT

_OWN_BYTES_MIN = 4096


class WaitingReader(Protocol):
    """A connection that may have to wait for room."""

    def go_on(self) -> bool:
        """Read again; False if it is gone."""


class ReceiveBuffers:
    """The buffers of one broker; see the module's head."""

    def __init__(self, in_flight_bytes_max: int) -> None:
        #: Where every read of a connection begins that has no unfinished frame.
        self.shared = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self.in_flight_bytes_max = in_flight_bytes_max
        #: The size of the buffers that connections have.
        self.in_flight_bytes = 0
        # Those of frames that have come to their end, the one that was used last behind.
        self._spare: list[memoryview] = []
        # Who goes on beyond the bound, and who waits until there is room or it is their turn.
        self._turn: WaitingReader | None = None
        self._waiting: deque[WaitingReader] = deque()

    @property
    def is_full(self) -> bool:
        """Return whether unfinished frames take all the room they may."""
        return self.in_flight_bytes >= self.in_flight_bytes_max

    def take(self, size: int) -> memoryview:
        """Return a buffer with room for so many bytes, or for up to twice as many if it is new."""
        # Where there is no room, a small rest does not get a large buffer.
        spare = [] if self.is_full else self._spare
        while spare:
            buffer = spare.pop()
            if len(buffer) >= size:
                break
            # Frames are larger than they were: smaller buffers are of no use.
        else:
            buffer = memoryview(bytearray(max(1 << (size - 1).bit_length(), _OWN_BYTES_MIN)))
        self.in_flight_bytes += len(buffer)
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        """Take a connection's buffer back; a few are kept."""
        self.in_flight_bytes -= len(buffer)
        spare = self._spare
        if 0 < len(buffer) <= RECEIVE_BUFFER_BYTES and len(spare) < RECEIVE_BUFFERS_KEPT:
            spare.append(buffer)
        if self._waiting:
            self._wake()

    def has_room_for(self, connection: WaitingReader, size: int) -> bool:
        """Return whether a connection may take a buffer of this size; if not, it is woken later."""
        if self.in_flight_bytes + size <= self.in_flight_bytes_max:
            return True
        if self._turn is None:
            self._turn = connection
        if self._turn is connection:
            return True
        self._waiting.append(connection)
        return False

    def end_turn(self, connection: WaitingReader) -> None:
        """Let the next one go on beyond the bound: the frame is whole, or given up."""
        if self._turn is connection:
            self._turn = None
            self._wake()

    def _wake(self) -> None:
        while self._waiting and (self._turn is None or not self.is_full):
            # One is enough where all is full: it takes the turn with its next bytes.
            if self._waiting.popleft().go_on() and self._turn is None and self.is_full:
                return
