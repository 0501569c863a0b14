r"""Mapping of certificates' distinguished names to user names by rules.

```
RULE:^CN=(.*?),OU=Ops.*$/$1/L, RULE:^CN=(.*?)$/$1/, DEFAULT
     pattern of the whole name   replacement   L or U: lower or upper case   DEFAULT: unchanged
```

The first rule whose pattern matches is used.

Source: SslPrincipalMapper of 3.9.1. Differs: patterns are Python's; a pattern that only Java
supports, such as `\p{Lu}`, is a start error; `\d`, `\w` and `\s` are ASCII, as in Java.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from engine.errors import EngineError

DEFAULT: Final = "DEFAULT"
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_GROUP: Final = re.compile(r"\$(\d+)|\$\{(\w+)\}|\\(.)|\$", re.S)
_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")


class MappingRefused(EngineError):
    """Raised for an invalid list of rules."""


class NoMappingRule(EngineError):
    """No rule matches a name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no rule of ssl.principal.mapping.rules applies to {name}")
        self.name = name


class BadReplacement(EngineError):
    """A replacement has a group that its pattern lacks; found at the first use, as in Kafka."""

    def __init__(self, replacement: str) -> None:
        super().__init__(f"{replacement} of ssl.principal.mapping.rules names no group")
        self.replacement = replacement


class _Rule(NamedTuple):
    #: None for DEFAULT.
    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""


class PrincipalMapping:
    """A list of mapping rules."""

    def __init__(self, text: str) -> None:
        """Parse the rules in `ssl.principal.mapping.rules`; raises MappingRefused."""
        self._rules = [
            rule
            for match in _SPLITTER.finditer(text.strip())
            if (rule := _parse_rule(match[1])) is not None
        ]

    def user_of(self, distinguished_name: str) -> str:
        """Return the user name to which the first matching rule maps a distinguished name.

        Raises NoMappingRule and BadReplacement.
        """
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished_name
            if rule.pattern.fullmatch(distinguished_name):
                return _apply_rule(rule, rule.pattern, distinguished_name)
        raise NoMappingRule(distinguished_name)


def _parse_rule(text: str) -> _Rule | None:
    """Return the rule in a text, None for empty text; raises MappingRefused."""
    match = _PARSER.match(text)
    if match is None or match.end() != len(text):
        # An invalid rule matches the last alternative, which may match an empty text.
        raise MappingRefused(f"Invalid rule: {text}")
    default, pattern, replacement, case, _ = match.groups()
    if default is not None:
        return _Rule(None)
    if pattern is None:
        return None
    try:
        compiled = re.compile(_NAMED_GROUP.sub("(?P<", pattern), re.ASCII)
    except re.error as error:
        raise MappingRefused(f"Invalid rule: {text}: {error}") from error
    return _Rule(compiled, replacement, case)


def _apply_rule(rule: _Rule, pattern: re.Pattern[str], name: str) -> str:
    """Return a distinguished name after a rule's replacement and change of case.

    Raises BadReplacement.
    """
    mapped = pattern.sub(lambda match: _fill_replacement(rule.replacement, match), name)
    return {"L": mapped.lower(), "U": mapped.upper()}.get(rule.case, mapped)


def _fill_replacement(replacement: str, match: re.Match[str]) -> str:
    """Return a replacement in Java's syntax with its groups filled in; raises BadReplacement."""

    def fill(found: re.Match[str]) -> str:
        """Return the text for `$1`, `${name}` or an escaped character; raises for a `$` alone."""
        number, group, escaped = found.groups()
        if number is not None:
            return _text_of_group(number, match)
        if group is not None and group in match.re.groupindex:
            return match[group] or ""
        if escaped is None:
            raise BadReplacement(replacement)
        return escaped

    return _GROUP.sub(fill, replacement)


def _text_of_group(digits: str, match: re.Match[str]) -> str:
    """Return the text of a numbered group; digits beyond the existing groups are literal.

    So `$12` is group 1 and the digit 2 if there are fewer than twelve groups, as in Java.
    """
    for size in range(len(digits), 0, -1):
        if int(digits[:size]) <= len(match.groups()):
            return (match[int(digits[:size])] or "") + digits[size:]
    return f"${digits}"
