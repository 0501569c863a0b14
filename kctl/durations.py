"""Parse durations in options: 90s, 10m, 2h, 7d."""

from __future__ import annotations

from typing import Final

from kctl.arguments import UnreadableArgument
from kctl.iso_times import parse_age_ms

#: A century: the clocks of some machines do not reach further.
_MAX_MS: Final = 36_500 * 86_400_000


def parse_duration_ms(text: str, option: str, *, lowest_ms: int = 0) -> int:
    """Parse a duration such as 90s, 10m or 2h into ms, for a value of `option`.

    It may be from `lowest_ms` to a century, inclusive.

    Errors: UnreadableArgument.
    """
    found = parse_age_ms(f"-{text.strip()}")
    if found is None:
        raise UnreadableArgument(f"a value of {option}", text, "a duration such as 90s, 10m or 2h")
    if not lowest_ms <= found <= _MAX_MS:
        expected = f"{lowest_ms // 1000}s to {_MAX_MS // 86_400_000}d"
        raise UnreadableArgument(f"a value of {option}", text, expected)
    return found
