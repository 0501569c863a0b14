"""Messages for text that is not JSON; for text that ends too early, Jackson's message.

Other errors have kctl's message with Jackson's format of line and column, both from 1.

Source: JsonEOFException of Jackson 2.16.
"""

from __future__ import annotations

import json

_PLACE = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); "
_OPENERS = {"[": "Array", "{": "Object"}
_CLOSERS = "]}"


def mistake_of(text: str) -> str:
    """Return Jackson's message for a JSON text that cannot be parsed.

    That is similar, not equal, to Jackson's for mistakes other than a missing end.
    """
    if not text.strip():
        return "The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]"
    opened = _still_open(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if opened and error.pos >= len(text.rstrip()):
            start = opened[-1]
            return (
                f"Unexpected end-of-input: expected close marker for {_OPENERS[text[start]]} "
                f"(start marker at {_place(text, start)})\n at {_place(text, len(text))}"
            )
        return f"{error.msg}\n at {_place(text, error.pos)}"
    return "No content to map due to end-of-input"


def _still_open(text: str) -> list[int]:
    """Return the positions of unclosed arrays and objects; empty if a string is unclosed."""
    opened: list[int] = []
    in_string = False
    is_escaped = False
    for index, letter in enumerate(text):
        if in_string:
            in_string = is_escaped or letter != '"'
            is_escaped = letter == "\\" and not is_escaped
        elif letter == '"':
            in_string = True
        elif letter in _OPENERS:
            opened.append(index)
        elif letter in _CLOSERS and opened:
            opened.pop()
    return [] if in_string else opened


def _place(text: str, index: int) -> str:
    """Return Jackson's text for a position in JSON: line and column from 1."""
    line = text.count("\n", 0, index) + 1
    column = index - (text.rfind("\n", 0, index) + 1) + 1
    return f"{_PLACE}line: {line}, column: {column}]"
