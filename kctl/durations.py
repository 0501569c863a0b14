"""Durations in options: 90s, 10m, 2h, 7d."""

from __future__ import annotations

from kctl.arguments import UnreadableArgument
from kctl.iso_times import age_ms


def duration_ms(text: str, option: str) -> int:
    """Return a duration in ms; raises UnreadableArgument."""
    found = age_ms(f"-{text.strip()}")
    if found is None:
        raise UnreadableArgument(f"a value of {option}", text, "a duration such as 90s, 10m or 2h")
    return found
