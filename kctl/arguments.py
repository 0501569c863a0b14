"""The error for an invalid argument, and counts in messages."""

from __future__ import annotations

from engine.errors import EngineError
from kctl import exits


class UnreadableArgument(EngineError):
    """An argument is invalid."""

    exit_code = exits.USAGE

    def __init__(self, what: str, text: str, expected: str) -> None:
        super().__init__(f"not {what}: {text!r}; expected {expected}")
        self.text = text
        self.expected = expected


def is_utf8(text: str) -> bool:
    """Return True if an argument's bytes are valid UTF-8.

    Python decodes invalid ones to surrogates, which requests cannot encode.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 topic` or `2 topics`."""
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"
