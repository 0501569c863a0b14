"""Count records by batch headers in plain Python; see `header_counts.py`.

Used on machines without compiled code, and by the first command on other machines, while the code
is not compiled yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.native.header_counts import CountedRecords, HeaderRange
from engine.records.batch_header import (
    CODEC_BITS,
    CONTROL_FLAG,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    read_counts,
)
from engine.records.codec import Codec

_LAST_CODEC: Final = max(Codec)
_LENGTH_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD_BYTES
_OFFSET_MAX: Final = 1 << 62


def count_by_headers(
    within: HeaderRange, read_at: Callable[[int, int], bytes], *, passes_control: bool
) -> CountedRecords:
    """Count the records in a range of a segment by batch headers; see `HeaderCounter.count`.

    The same in Python, for processes that have not loaded the compiled code. `read_at(position,
    size)` returns fewer bytes at the end of the file.
    """
    position, next_offset, epoch = within.start, within.first_offset, within.first_epoch
    length_max = within.file_end - LENGTH_OVERHEAD_BYTES
    # Position and record count of the last two counted batches.
    before = last = (position, 0)
    total = 0
    while position < within.limit:
        header = read_at(position, HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            break
        offset, length, batch_epoch, magic, attributes, last_delta, count = read_counts(header)
        if (
            not _LENGTH_MIN <= length <= length_max - position
            or offset != next_offset
            or batch_epoch < epoch
            or magic != MAGIC
            or attributes & CODEC_BITS > _LAST_CODEC
            or last_delta < 0
            or count != last_delta + 1
            or next_offset >= _OFFSET_MAX
        ):
            break
        epoch = batch_epoch
        records = 0 if passes_control and attributes & CONTROL_FLAG else count
        before, last = last, (position, records)
        total += records
        next_offset += count
        position += length + LENGTH_OVERHEAD_BYTES
    else:
        return CountedRecords(total, position, next_offset)
    # A wrong length may have led here: the last two batches are left to a full read.
    return CountedRecords(total - last[1] - before[1], before[0], next_offset)
