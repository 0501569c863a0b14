"""Words on the command line that were not understood."""

from __future__ import annotations

from engine.errors import EngineError
from kctl import exits


class UnreadableWord(EngineError):
    """An argument was not understood."""

    exit_code = exits.USAGE

    def __init__(self, what: str, text: str, expected: str) -> None:
        super().__init__(f"not {what}: {text!r}; expected {expected}")
        self.text = text
        self.expected = expected
