"""Points in time as a person types them."""

from __future__ import annotations

from engine.errors import EngineError


class UnreadableTime(EngineError):
    """A point in time was not understood."""

    exit_code = 2
    hint = "use milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z"

    def __init__(self, text: str) -> None:
        super().__init__(f"not a point in time: {text!r}")
        self.text = text


def parse_time_ms(text: str) -> int:
    """Return ms since the Unix epoch; a time without a zone is UTC."""
    if text.lstrip("-").isdigit():
        return int(text)
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnreadableTime(text) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
