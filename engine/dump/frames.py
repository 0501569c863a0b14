"""Positions and sizes of the batches in a log, by the rules of Kafka's reader.

1. At fewer than 18 remaining bytes, or a size that goes beyond the end, the log is over.
2. A size below 14 raises CorruptRecord.

Source: FileLogInputStream.nextBatch.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import CorruptRecord
from engine.log.window import Window
from engine.records.batch_header import (
    LENGTH_OVERHEAD_BYTES,
    PROLOGUE_BYTES,
    read_offset_and_length,
)

_SMALLEST_SIZE_BYTES = 14


def read_frame(window: Window, path: str, position: int, end: int) -> tuple[int, int] | None:
    """Return (base offset, size in bytes) of the batch at `position`, None at the log's end.

    A truncated batch also counts as the end. Raises CorruptRecord for too small a length.
    """
    if position >= end - PROLOGUE_BYTES:
        return None
    base_offset, length = read_offset_and_length(
        window.read_exactly(position, PROLOGUE_BYTES, "a batch header")
    )
    if length < _SMALLEST_SIZE_BYTES:
        raise CorruptRecord("a batch size of at least 14", length, path=path, position=position)
    size = LENGTH_OVERHEAD_BYTES + length
    return None if size > end - position else (base_offset, size)


def iter_frames(window: Window, path: str, end: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (position, size in bytes) of each batch, from the position `start` to `end`."""
    position = start
    while (frame := read_frame(window, path, position, end)) is not None:
        _, size = frame
        yield position, size
        position += size
