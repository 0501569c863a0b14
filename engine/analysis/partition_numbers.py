"""Parse partition numbers of command lines, such as `0,2,5-9`."""

from __future__ import annotations

import re

_RANGE_MAX = 1_000_000


def parse_numbers(text: str) -> frozenset[int]:
    """Return the partition numbers of a list such as `0,2,5-9`; raises ValueError."""
    numbers: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if ends is None or int(ends[2] or ends[1]) - int(ends[1]) not in range(_RANGE_MAX):
            raise ValueError("expected numbers such as 0,2,5-9")
        numbers.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return frozenset(numbers)
