"""The bytes of a variable-length integer after its first one, for readers in plain Python.

Readers of records handle the first byte themselves: most numbers have only one, and a call for
those would take longer than the rest of the work.
"""

from __future__ import annotations

from typing import Final

from engine.host.ports import Buffer

#: The bit at which the last byte starts in the longest form accepted here. Lengths and offset
#: deltas of five bytes, and times of nine and ten, are left to the slow readers, which report
#: errors.
VARINT_SHIFT_MAX: Final = 21
VARLONG_SHIFT_MAX: Final = 49


def multibyte_varint(data: Buffer, position: int, first: int, shift_max: int) -> tuple[int, int]:
    """Decode a varint of two or more bytes; return the unsigned number and the position after it.

    `first` is its first byte, at `position` - 1. Raises IndexError if the data ends before it, or
    if it is longer than `shift_max` allows.
    """
    byte = data[position]
    if byte < 0x80:
        return first & 0x7F | byte << 7, position + 1
    raw = first & 0x7F | (byte & 0x7F) << 7
    for shift in range(14, shift_max + 1, 7):
        position += 1
        byte = data[position]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position + 1
    raise IndexError
