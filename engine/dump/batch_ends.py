"""The last offsets of a log's batches from any position on, which index entries must have.

Batches that were read are kept in two arrays, so that the entries of an index need only one pass
over the headers in the log.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from engine.dump.frames import read_frame
from engine.host.ports import File
from engine.log.window import Window
from engine.records.batch_header import (
    LENGTH_OVERHEAD_BYTES,
    read_last_offset_delta,
    read_offset_and_length,
)

# The window is small, since only headers are read: most of a log is skipped.
_WINDOW_BYTES = 64 * 1024


class BatchEnds:
    """Reads batch headers one after the other from a position on, as FileLogInputStream does."""

    def __init__(self, file: File) -> None:
        """The file's size is taken now; nothing is read yet."""
        self.size_bytes = file.size_bytes()
        self._path = file.path
        self._window = Window(file, self.size_bytes, _WINDOW_BYTES)
        #: Position and last offset of each batch read so far.
        self._positions = array("q")
        self._last_offsets = array("q")
        #: Position of the next batch; True once the end of the log is reached.
        self._next = 0
        self._ended = True

    def last_offset_at(self, position: int, max_bytes: int) -> int | None:
        """Return the last offset of the batch at `position`; None if larger than `max_bytes`."""
        end = min(position + max_bytes, self.size_bytes)
        frame = self._read_frame(position, end)
        if frame is None:
            return None
        last_offset, _ = frame
        return last_offset

    def find_batch_end(self, position: int, offset: int, whole: bool) -> tuple[int, int] | None:
        """Return (last offset, position) of the first batch that ends at or after `offset`.

        The search starts at `position`; None if there is none. With `whole` the log is first read
        to its end, so that damage anywhere is found.
        """
        at = self._find_index(position)
        if whole:
            while self._read_next_header():
                pass
        while True:
            if at == len(self._positions) and not self._read_next_header():
                return None
            if self._last_offsets[at] >= offset:
                return self._last_offsets[at], self._positions[at]
            at += 1

    def batch(self, position: int) -> memoryview:
        """Return the complete batch at a position, as a view that is valid until the next call."""
        _, length = read_offset_and_length(self._window.read(position, 12))
        return self._window.read_exactly(position, LENGTH_OVERHEAD_BYTES + length, "a record batch")

    def _find_index(self, position: int) -> int:
        """Return the index of the batch at a position among those read.

        The next index if it is unread. For a position that is neither read nor next, reading begins
        again at that position.
        """
        index = bisect_left(self._positions, position)
        if index < len(self._positions) and self._positions[index] == position:
            return index
        if position != self._next or self._ended:
            self._positions, self._last_offsets = array("q"), array("q")
            self._next, self._ended = position, False
        return len(self._positions)

    def _read_next_header(self) -> bool:
        """Read the next batch header and append its figures; return False at the end of the log."""
        if self._ended:
            return False
        frame = self._read_frame(self._next, self.size_bytes)
        if frame is None:
            self._ended = True
            return False
        last_offset, size = frame
        self._positions.append(self._next)
        self._last_offsets.append(last_offset)
        self._next += size
        return True

    def _read_frame(self, position: int, end: int) -> tuple[int, int] | None:
        """Return last offset and size of the batch at a position, None at the end of the log."""
        frame = read_frame(self._window, self._path, position, end)
        if frame is None:
            return None
        base_offset, size = frame
        header = self._window.read(position, 17)
        if not 2 <= header[16] < 128:
            return base_offset, size
        header = self._window.read_exactly(position, 61, "a batch header")
        return base_offset + read_last_offset_delta(header, 0), size
