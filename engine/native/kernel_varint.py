"""Varints read from raw bytes, for source to be compiled; numba inlines the function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

if TYPE_CHECKING:
    from engine.native.pointers import Bytes


@numba.njit(inline="always", error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def raw_varint(raw: Bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    """Return an unsigned varint of at most `longest` bytes, and the position after it.

    If it is incomplete at `end`, or longer, the position returned is `end` + 1.
    """
    value = 0
    shift = 0
    behind = end + 1
    for n in range(longest):
        if at + n >= end:
            break
        byte = types.int64(raw[at + n])
        value |= (byte & 0x7F) << shift
        if byte < 128:
            behind = at + n + 1
            break
        shift += 7
    return value, behind
