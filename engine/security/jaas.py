"""Parsing of JAAS configurations: the login in `sasl.jaas.config`, and files.

```
org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="secret" user_admin="secret" user_alice="wonder";

Client {                                                             a file has sections
  org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret";
};
```

Words consist of letters, digits, `.`, `-`, `_`, `$` and non-ASCII characters, and do not begin like
a number; values are quoted strings or words. Comments are as in Java.

Source: JaasConfig, java.io.StreamTokenizer, sun.security.provider.ConfigFile.
Differs: `${...}` in a file is unchanged; Java replaces it by system properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from engine.errors import EngineError

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""(?:[\x00-\x20] | //[^\r\n]* | /\*.*?\*/)*
    (?: (?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)
      | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9._$\u00a0-\U0010ffff-]*)
      | (?P<other>[^\x00-\x20]) )?""",
    re.X | re.S,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class JaasRefused(EngineError):
    """Raised for an invalid JAAS configuration; the message has none of the text or passwords."""


class JaasEntry(NamedTuple):
    """A login module and its options, which are not in the repr."""

    login_module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.login_module})"


def parse_jaas_entry(text: str) -> JaasEntry:
    """Return the login module of a setting such as `sasl.jaas.config`.

    Raises JaasRefused unless there is exactly one.
    """
    entries = list(_iter_entries(_tokenize(text)))
    if not entries:
        raise JaasRefused("Login module not specified in JAAS config")
    if len(entries) > 1:
        raise JaasRefused(
            f"JAAS config property contains {len(entries)} login modules, should be 1 module"
        )
    return entries[0]


def parse_jaas_sections(text: str) -> dict[str, list[JaasEntry]]:
    """Return the entries of each section of a JAAS file by the section's name.

    Raises JaasRefused.
    """
    sections: dict[str, list[JaasEntry]] = {}
    tokens = _tokenize(text)
    for name in tokens:
        opening = next(tokens, None)
        if not name.value or opening is None or opening.character != "{":
            raise JaasRefused("a section of a JAAS file is a name and entries in braces")
        if name.value in sections:
            raise JaasRefused(f"a JAAS file has two sections {name.value}")
        sections[name.value] = list(_parse_section(name.value, tokens))
    return sections


def _parse_section(name: str, tokens: Iterator[_Token]) -> Iterator[JaasEntry]:
    """Yield the entries of a section after its opening brace; raises JaasRefused."""
    for module in tokens:
        if module.character == "}":
            end = next(tokens, None)
            if end is None or end.character != ";":
                raise JaasRefused(f"the section {name} of a JAAS file has no semicolon after it")
            return
        yield _parse_entry(module, tokens)
    raise JaasRefused(f"the section {name} of a JAAS file has no end")


class _Token(NamedTuple):
    #: A word or a quoted text; None for any other character.
    value: str | None
    character: str = ""


def _tokenize(text: str) -> Iterator[_Token]:
    """Yield the tokens of a JAAS text, up to its end or the first invalid character."""
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        if match["quote"] is not None:
            yield _Token(re.sub(r"\\(.)", _unescaped, match["quoted"], flags=re.S))
        elif match["word"] is not None:
            yield _Token(match["word"])
        elif match["other"] is not None:
            yield _Token(None, match["other"])
        else:
            return


def _unescaped(match: re.Match[str]) -> str:
    """Return the character that an escape in a quoted string means."""
    return _ESCAPES.get(match[1], match[1])


def _iter_entries(tokens: Iterator[_Token]) -> Iterator[JaasEntry]:
    """Yield the entries of a text without sections; raises JaasRefused."""
    for module in tokens:
        yield _parse_entry(module, tokens)


def _parse_entry(module: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    """Return the entry that begins with the login module `module`; raises JaasRefused."""
    flag = next(tokens, None)
    if flag is None:
        raise JaasRefused("Login module control flag not specified in JAAS config")
    if (flag.value or "").lower() not in _FLAGS:
        raise JaasRefused("Invalid login module control flag in JAAS config")
    return JaasEntry(module.value or "", _parse_options(tokens))


def _parse_options(tokens: Iterator[_Token]) -> dict[str, str]:
    """Return an entry's options up to the semicolon.

    Raises JaasRefused if a value or the semicolon is missing.
    """
    options: dict[str, str] = {}
    for key in tokens:
        if key.character == ";":
            return options
        equals, value = next(tokens, None), next(tokens, None)
        if equals is None or equals.character != "=" or value is None or value.value is None:
            raise JaasRefused(f"Value not specified for key '{key.value}' in JAAS config")
        options[key.value or ""] = value.value
    raise JaasRefused("JAAS config entry not terminated by semi-colon")
