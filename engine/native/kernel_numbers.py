"""Signed big-endian integers read from raw bytes, for source to be compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
from numba import types

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba.core.registry import CPUDispatcher as Dispatcher

    from engine.native.pointers import Bytes

_I64 = types.int64


def _inlined(function: Callable[..., object]) -> Dispatcher:
    """Decorate a helper so that numba compiles it into each caller.

    The kernel then has no calls.
    """
    return numba.njit(inline="always", error_model="numpy")(function)


@_inlined
def int32_at(raw: Bytes, at: int) -> int:
    """Return the signed big-endian int32 at a position."""
    value = (
        (_I64(raw[at]) << 24)
        | (_I64(raw[at + 1]) << 16)
        | (_I64(raw[at + 2]) << 8)
        | _I64(raw[at + 3])
    )
    return (value ^ 0x80000000) - 0x80000000


@_inlined
def int64_at(raw: Bytes, at: int) -> int:
    """Return the signed big-endian int64 at a position."""
    return (int32_at(raw, at) << 32) | (int32_at(raw, at + 4) & 0xFFFFFFFF)


@_inlined
def int16_at(raw: Bytes, at: int) -> int:
    """Return the signed big-endian int16 at a position."""
    value = (_I64(raw[at]) << 8) | _I64(raw[at + 1])
    return (value ^ 0x8000) - 0x8000
