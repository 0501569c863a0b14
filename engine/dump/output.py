"""Where a dump's bytes go: gathered into large writes, in order, nothing kept back on errors."""

from __future__ import annotations

from collections.abc import Callable

# One write per 256 KiB keeps system calls rare and the first lines prompt.
_FLUSH_BYTES = 256 * 1024


class Output:
    """Collects pieces of output; `flush()` hands them on."""

    def __init__(self, write: Callable[[bytes | memoryview], object]) -> None:
        self._write = write
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def add(self, piece: bytes) -> None:
        """Take some bytes, writing what is held once it is enough."""
        self._pieces.append(piece)
        self._size_bytes += len(piece)
        if self._size_bytes >= _FLUSH_BYTES:
            self.flush()

    def line(self, text: str) -> None:
        """Take one line of text."""
        self.add(text.encode("utf-8", "surrogateescape") + b"\n")

    def direct(self, block: bytes | memoryview) -> None:
        """Write a block at once, after what is held; the block may be reused afterwards."""
        self.flush()
        self._write(block)

    def flush(self) -> None:
        """Write what is held."""
        if self._pieces:
            self._write(b"".join(self._pieces))
            self._pieces.clear()
            self._size_bytes = 0
