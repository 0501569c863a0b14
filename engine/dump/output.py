"""Output of a dump: collected in one arena, and written in large blocks, in order."""

from __future__ import annotations

from collections.abc import Callable

# Large enough for few system calls, small enough to print the first lines promptly.
_BLOCK_BYTES = 512 * 1024


class Output:
    """Collects output in an arena; `flush` writes it.

    Compiled code writes into the arena itself: `reserve` makes room, `commit` adds what was
    written. If more room is needed the arena is replaced, never resized.
    """

    def __init__(self, write: Callable[[memoryview], object]) -> None:
        """`write` gets each full block, and the rest at a flush."""
        self._write = write
        #: The bytes up to `end` are output.
        self.arena = bytearray(2 * _BLOCK_BYTES)
        self._view = memoryview(self.arena)
        self.end = 0

    def add(self, piece: bytes) -> None:
        """Append bytes to the output; write the whole arena once a block is full."""
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
        """Append a line of text and its line end to the output."""
        self.add(text.encode("utf-8", "surrogateescape") + b"\n")

    def reserve(self, size_bytes: int) -> None:
        """Make room in the arena for this number of bytes after `end`.

        What it had may be written out.
        """
        if len(self.arena) - self.end >= size_bytes:
            return
        self.flush()
        if size_bytes > len(self.arena):
            self.arena = bytearray(size_bytes)
            self._view = memoryview(self.arena)

    def commit(self, size_bytes: int) -> None:
        """Count as output this number of bytes that the caller wrote into the arena after `end`."""
        self.end += size_bytes
        if self.end >= _BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything that was added since the last flush."""
        if self.end:
            end, self.end = self.end, 0
            self._write(self._view[:end])
