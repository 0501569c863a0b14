"""Timestamps as ISO 8601."""

from __future__ import annotations

from functools import lru_cache


def time_text(timestamp_ms: int) -> str:
    """Return a timestamp in ms since 1970 as ISO 8601 in UTC: 2026-01-31T12:00:00.000Z.

    The plain number is returned for a time that is out of range.
    """
    seconds, ms = divmod(timestamp_ms, 1000)
    text = _second_text(seconds)
    return str(timestamp_ms) if text is None else f"{text}.{ms:03d}Z"


@lru_cache(maxsize=16)
def _second_text(seconds: int) -> str | None:
    """Return date and time of a second since 1970, None if it is out of range.

    Cached, since many records share it.
    """
    from datetime import datetime, timedelta

    try:
        return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return None
