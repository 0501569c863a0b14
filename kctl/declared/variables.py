"""References to environment variables in the texts of files.

| text | replaced by |
|---|---|
| `${NAME}` | the variable; an error if it is not set |
| `${NAME:-text}` | the variable, or the text if it is not set or empty |
| `$${` | `${` itself |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from engine.errors import EngineError

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class BadReference(EngineError):
    """A reference is malformed, or its variable is not set."""

    def __init__(self, text: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{text}: {reason}")
        self.hint = hint


def with_variables(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its references `${NAME}` replaced by variables; raises BadReference."""
    return _REFERENCE.sub(lambda match: _replacement(match, environment), text)


def has_reference(text: str) -> bool:
    """Return True if a text has a reference to a variable, `${NAME}`."""
    return any(match[0] != "$${" for match in _REFERENCE.finditer(text))


def variable_of(text: str) -> str | None:
    """Return NAME if the whole text is `${NAME}`, without a default, else None."""
    match = re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", text)
    return None if match is None else match[1]


def without_references(text: str) -> str:
    """Return a text in which `${` is escaped, so that a file with it means this text."""
    return text.replace("${", "$${")


def _replacement(match: re.Match[str], environment: Mapping[str, str]) -> str:
    """Return the variable's value, or the default, for a reference; raises BadReference."""
    if match[0] == "$${":
        return "${"
    name = _NAME.fullmatch(match[1]) if match[0].endswith("}") else None
    if name is None:
        expected = "expected ${NAME} or ${NAME:-text}; $${ stands for ${ itself"
        raise BadReference(match[0], "is no reference to a variable", expected)
    value = environment.get(name[1])
    if name[2] is not None:
        return value or name[2]
    if value is None:
        hint = f"export {name[1]}, or give a default: ${{{name[1]}:-text}}"
        raise BadReference(match[0], f"the variable {name[1]} is not set", hint)
    return value
