"""Parse points in time in arguments, equally in every command.

| text | time |
|---|---|
| `1767225600000`, `@1767225600000` | ms since 1970, of 64 bits |
| `-90s`, `-15m`, `-1h`, `-7d`, `-2w` | this long ago |
| `now`, `today`, `yesterday` | the current time, the start of a day in UTC |
| `2026-01-31`, `2026-01-31T12:00:00Z`, `2026-01-31T12:00+01:00` | ISO 8601, UTC without a zone |
"""

from __future__ import annotations

from engine.errors import EngineError
from kctl.numbers import INT64_MAX, read_whole

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DAY_MS = 86_400_000


class UnreadableTime(EngineError):
    """The text is not a point in time."""

    exit_code = 2
    hint = "use -1h, yesterday, 2026-01-31T12:00:00Z or milliseconds since 1970"

    def __init__(self, text: str) -> None:
        super().__init__(f"not a point in time: {text!r}")
        self.text = text


def parse_time_ms(text: str, now_ms: int | None = None) -> int:
    """Parse a point in time into ms since 1970; a time without a zone is UTC.

    `now_ms` None means that the clock is read if needed. Errors: UnreadableTime.
    """
    number = text.removeprefix("@")
    if number.removeprefix("-").isdecimal() and number.isascii():
        time_ms = read_whole(number)
        if time_ms is None or not -INT64_MAX <= time_ms <= INT64_MAX:
            raise UnreadableTime(text)
        return time_ms
    relative = _parse_relative_ms(text.strip().lower(), now_ms)
    return _parse_iso_ms(text) if relative is None else relative


def parse_age_ms(text: str) -> int | None:
    """Parse an age such as `-1h` into ms, 3,600,000 here; None for text of another form."""
    if text[:1] != "-" or not text[1:-1].isdecimal() or text[-1] not in _UNITS_MS:
        return None
    count = read_whole(text[1:-1])
    return None if count is None else count * _UNITS_MS[text[-1]]


def _parse_relative_ms(text: str, now_ms: int | None) -> int | None:
    """Parse an age, `now`, `today` or `yesterday` into ms since 1970; None for other text."""
    age = parse_age_ms(text)
    if age is None and text not in ("now", "today", "yesterday"):
        return None
    if now_ms is None:
        import time

        now_ms = time.time_ns() // 1_000_000
    if age is not None:
        return max(now_ms - age, 0)
    if text == "now":
        return now_ms
    today_ms = now_ms - now_ms % _DAY_MS
    return today_ms if text == "today" else today_ms - _DAY_MS


def _parse_iso_ms(text: str) -> int:
    """Parse an ISO 8601 time into ms since 1970, UTC without a zone; raises UnreadableTime."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnreadableTime(text) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def iso_time(time_ms: int) -> str:
    """Format a time in ms since 1970 in UTC: 2026-01-31T12:00:00.000Z."""
    from kctl.time_text import time_text

    return time_text(time_ms)
