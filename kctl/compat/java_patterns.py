"""Regular expressions in options of Kafka's tools.

Differs: their syntax is Python's, except that a brace must begin a repetition.
"""

from __future__ import annotations

import re
from typing import Final

from kctl.compat.java_failures import ToolFailure

#: Valid uses of braces: character names, escapes, classes, repetitions.
_WITH_BRACES: Final = re.compile(
    r"\\[pPxNk]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9]+(?:,[0-9]*)?\}", re.S
)


def is_java_pattern(text: str) -> bool:
    """Return True if Python and Java accept a text as a regular expression.

    Java refuses a stray brace, Python does not.
    """
    try:
        re.compile(text)
    except re.error:
        return False
    return "{" not in _WITH_BRACES.sub("", text)


def compile_java_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression; raises ToolFailure for one that Java refuses."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise _refused(f"{error} near index {error.pos}", text) from error
    if not is_java_pattern(text):
        raise _refused(f"Illegal repetition near index {text.index('{')}", text)
    return pattern


def _refused(why: str, text: str) -> ToolFailure:
    """Return the PatternSyntaxException for a regular expression."""
    return ToolFailure("java.util.regex.PatternSyntaxException", f"{why}\n{text}")
