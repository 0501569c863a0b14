"""The batches in a window that compiled code can print, many at a time.

They are of format 2 and completely in the window; with records only uncompressed data batches.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple, Protocol, runtime_checkable

from engine.dump.output import Output
from engine.dump.plain_lines import Lines
from engine.records.batch_header import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, read_header
from engine.records.crc import crc32c

_CODEC = 0x07
_CODEC_AND_CONTROL = 0x27
_LAST_CODEC = 4
_CHECKED_FROM = 21


class WindowBatches(NamedTuple):
    """Batches in a buffer: start and end of each, and whether its CRC is valid.

    `base_position` is the position of the buffer in the file; the maxima are over all batches.
    """

    base_position: int
    positions: array[int]
    ends: list[int]
    valid: bytearray
    size_bytes_max: int
    record_count_max: int


@runtime_checkable
class WindowTier(Protocol):
    """Prints whole batches: their own lines and those of their records."""

    def write_batches(
        self, out: Output, raw: memoryview, batches: WindowBatches, first: int, last: int
    ) -> tuple[int, Lines]:
        """Write the lines of batches from index `first` on, up to the first that it cannot print.

        Returns the number of batches written, and the last offset with the gaps found in them.
        `last` is the offset of the previous record, -1 if none.
        """
        ...


def window_tier_of(tier: object) -> WindowTier | None:
    """Return `tier` if it can print whole batches, else None; this check is slow."""
    return tier if isinstance(tier, WindowTier) else None


def select_printable(view: memoryview, base_position: int, *, with_records: bool) -> WindowBatches:
    """Return the batches at the start of `view`, up to the first that compiled code cannot print.

    `base_position` is the position of `view` in the file. With `with_records` the code must print
    their records too, which excludes compressed and control batches.
    """
    positions = array("q")
    ends: list[int] = []
    valid = bytearray()
    start, size_max, count_max, limit = 0, 0, 0, len(view) - HEADER_BYTES
    while start <= limit:
        (_, length, _, magic, crc, attributes, _, _, _, _, _, _, count) = read_header(view, start)
        end = start + LENGTH_OVERHEAD_BYTES + length
        if magic != 2 or length < HEADER_BYTES - LENGTH_OVERHEAD_BYTES or end > len(view):
            break
        if with_records:
            if attributes & _CODEC_AND_CONTROL or count <= 0 or count * 7 > length:
                break
        elif attributes & _CODEC > _LAST_CODEC:
            break
        positions.append(start)
        ends.append(end)
        valid.append(crc32c(view[start + _CHECKED_FROM : end]) == crc)
        if with_records:
            size_max, count_max = max(size_max, end - start), max(count_max, count)
        start = end
    return WindowBatches(base_position, positions, ends, valid, size_max, count_max)
