"""Filters of records by content: options common to `consume` and `dump-log`."""

from __future__ import annotations

import os
import re

from engine.dump.filters import Filters
from engine.dump.json_condition import parse_condition
from engine.errors import EngineError
from kctl import exits


class WrongPattern(EngineError):
    """A pattern is not a valid regular expression."""

    exit_code = exits.USAGE
    hint = "patterns are Python's regular expressions; they match anywhere in the bytes"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"the pattern {text!r} is wrong: {reason}")
        self.text = text
        self.reason = reason


def content_filters(
    key: str | None,
    key_regex: str | None,
    value_regex: str | None,
    header: str | None,
    json_path: list[str] | None,
) -> Filters:
    """Return the filters of records for the options of `consume` and `dump-log`.

    None leaves that filter out. `key` is the exact key, the patterns are searched in bytes.

    Errors: WrongPattern, WrongJsonPath.
    """
    return Filters(
        key=None if key is None else os.fsencode(key),
        key_pattern=_compile_pattern(key_regex),
        value_pattern=_compile_pattern(value_regex),
        header=header,
        json_conditions=tuple(map(parse_condition, json_path or ())),
    )


def _compile_pattern(text: str | None) -> re.Pattern[bytes] | None:
    """Compile an option's regular expression for bytes, None for None; raises WrongPattern."""
    if text is None:
        return None
    try:
        return re.compile(os.fsencode(text))
    except re.error as error:
        raise WrongPattern(text, str(error)) from error
