"""Output of a dump: gathered in one arena, written in large blocks, in order."""

from __future__ import annotations

from collections.abc import Callable

# A block of this size keeps system calls rare and the first lines prompt.
_BLOCK_BYTES = 512 * 1024


class Output:
    """Collects output in an arena; `flush()` writes it.

    Compiled code writes into the arena itself: `reserve` makes room, `commit` takes what was
    written. The arena is replaced, never resized, when more room is asked for than it has.
    """

    def __init__(self, write: Callable[[memoryview], object]) -> None:
        """`write` gets each full block, and the rest at a flush."""
        self._write = write
        #: Memory for output; the bytes up to `end` are filled.
        self.arena = bytearray(2 * _BLOCK_BYTES)
        self._view = memoryview(self.arena)
        self.end = 0

    def add(self, piece: bytes) -> None:
        """Buffer some bytes, and write the buffer once it is full."""
        start = self.end
        end = start + len(piece)
        if end > len(self.arena):
            self.reserve(len(piece))
            start, end = self.end, self.end + len(piece)
        self._view[start:end] = piece
        self.end = end
        if end >= _BLOCK_BYTES:
            self.flush()

    def line(self, text: str) -> None:
        """Take one line of text."""
        self.add(text.encode("utf-8", "surrogateescape") + b"\n")

    def reserve(self, size_bytes: int) -> None:
        """Make room for so many bytes behind `end`."""
        if len(self.arena) - self.end >= size_bytes:
            return
        self.flush()
        if size_bytes > len(self.arena):
            self.arena = bytearray(size_bytes)
            self._view = memoryview(self.arena)

    def commit(self, size_bytes: int) -> None:
        """Take bytes that were written behind `end`."""
        self.end += size_bytes
        if self.end >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered bytes."""
        if self.end:
            end, self.end = self.end, 0
            self._write(self._view[:end])
