"""Parse times and durations of Kafka's tools like Java.

| text | parsed as |
|---|---|
| `2026-01-31T12:00:00.000`, with any zone or none | that local time of this machine |
| `P1DT2H3M4.5S`, each part with its own sign | a duration; days have 24 hours |

Source: Utils.getDateTime of 3.9.1, java.text.SimpleDateFormat, java.time.Duration.parse.

Differs: a year of more than four digits is refused.
"""

from __future__ import annotations

import re
from datetime import datetime

from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_split import java_split

_RUNTIME = "java.lang.RuntimeException"
_PARSE = "java.text.ParseException"
_TIME = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})T(\d{1,2}):(\d{1,2}):(\d{1,2})\.(\d+)")
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def time_ms_of(text: str) -> int:
    """Parse an ISO 8601 time, as of --to-datetime, into ms since 1970; raises ToolFailure.

    A zone is ignored, and the time is local: the first pattern that Kafka tries has no zone, and
    matches.
    """
    parts = java_split(text, "T")
    if len(parts) < 2:
        raise _unreadable(
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    shown = text if any(mark in parts[1] for mark in "+-Z") else f"{text}Z"
    found = _TIME.match(text)
    if found is None:
        raise _unreadable(f'Unparseable date: "{shown}"')
    *fields, millis = map(int, found.groups())
    try:
        # A datetime without zone is local time, as in Java.
        moment = datetime(*fields)  # type: ignore[arg-type]
        if millis > 999:
            raise ValueError
        return round(moment.timestamp()) * 1000 + millis
    except (ValueError, OverflowError):
        raise _unreadable(f'Unparseable date: "{shown}"') from None


def _unreadable(message: str) -> ToolFailure:
    """Return the failure for a time that Java cannot parse, wrapped in a RuntimeException."""
    text = f"{_PARSE}: {message}"
    return ToolFailure(_RUNTIME, text, text)


def duration_ms_of(text: str) -> int:
    """Parse an ISO 8601 duration, such as P1DT2H, into ms as Java does; raises ToolFailure."""
    found = _DURATION.fullmatch(text)
    if found is None or found[3] in ("T", "t") or (found[2] is None and found[3] is None):
        message = "Text cannot be parsed to a Duration"
        raise ToolFailure("java.time.format.DateTimeParseException", message)
    sign, days, _, hours, minutes, seconds, fraction = found.groups()
    whole_s = int(days or 0) * 86_400 + int(hours or 0) * 3600
    whole_s += int(minutes or 0) * 60 + int(seconds or 0)
    nanos = int((fraction or "").ljust(9, "0"))
    if (seconds or "").startswith("-"):
        nanos = -nanos
    total_ns = whole_s * 1_000_000_000 + nanos
    return (-total_ns if sign == "-" else total_ns) // 1_000_000
