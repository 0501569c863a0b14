"""A sliding window over a file: one buffer for a file of any size."""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.host.ports import File
from engine.limits import SCAN_CHUNK_BYTES


class Window:
    """Returns parts of a file as views of one reused buffer.

    A view is valid until the next call. The buffer grows to the largest requested part,
    so callers check a length against `end` first.
    """

    def __init__(self, file: File, end: int, chunk_bytes: int = SCAN_CHUNK_BYTES) -> None:
        """Read parts of [0, end) of the file."""
        self.file = file
        self.end = end
        self._buffer = bytearray(min(chunk_bytes, max(end, 1)))
        self._view = memoryview(self._buffer)
        #: Position of the buffer's first byte, and how many bytes are filled.
        self._start = 0
        self._filled = 0

    def read(self, position: int, length: int) -> memoryview:
        """Return `length` bytes from `position`; fewer only at the end of the file."""
        offset = position - self._start
        if offset < 0 or offset + length > self._filled:
            self._refill(position, length)
            offset = 0
        return self._view[offset : min(offset + length, self._filled)]

    def read_ahead(self, position: int) -> memoryview:
        """Return the buffered bytes from `position` up to `end`; read more if only few are left."""
        offset = position - self._start
        left = self._filled - offset
        if not 0 <= offset <= self._filled or (
            left < len(self._buffer) // 8 and position + left < self.end
        ):
            self._refill(position, 0)
            offset = 0
        return self._view[offset : min(self._filled, offset + self.end - position)]

    def read_exactly(self, position: int, length: int, part: str) -> memoryview:
        """Return `length` bytes from `position`; raises CorruptRecord at the end of the file."""
        view = self.read(position, length)
        if len(view) < length:
            raise CorruptRecord(
                f"{length} bytes of {part}", len(view), path=self.file.path, position=position
            )
        return view

    def _refill(self, position: int, length: int) -> None:
        """Fill the buffer from `position` on; enlarge it first to `length` if it is shorter."""
        if length > len(self._buffer):
            self._buffer = bytearray(length)
            self._view = memoryview(self._buffer)
        self._start = position
        self._filled = self.file.read_into(position, self._view)
