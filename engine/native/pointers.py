"""Types of the parameters of compiled code: C pointers, which numba reads by index.

Only type checkers see these; numba's types stand in each kernel's `SIGNATURE`.
"""

from __future__ import annotations

from typing import Protocol


class Bytes(Protocol):
    """A pointer to bytes (uint8). Nothing checks an index."""

    def __getitem__(self, index: int) -> int: ...
    def __setitem__(self, index: int, value: int) -> None: ...


class Numbers(Protocol):
    """A pointer to numbers (int64). Nothing checks an index."""

    def __getitem__(self, index: int) -> int: ...
    def __setitem__(self, index: int, value: int) -> None: ...
