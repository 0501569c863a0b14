"""Shapes of command lines: texts with choices in them, and a draw of one line from a shape.

| in a shape | drawn |
|---|---|
| `--list` | as it is |
| `{topic}` | a value of the kind `topic` |
| `[--all]` | half of the times |
| `[--config {setting}]*` | none to three times |
| `(--a\\|--b {x})` | one of the choices |
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TOKEN = re.compile(r"\]\*|[\[\]()|]|(?:[^\s\[\]()|{}]|\{[a-z_0-9]+\})+")
_KIND = re.compile(r"\{([a-z_0-9]+)\}")
_REPEATS_MAX = 3

#: Returns a value of a kind.
Value = Callable[[str], str]


def drawn_line(shape: str, rng: random.Random, value: Value) -> list[list[str]]:
    """Return options with their values, each a list of words, as a shape has them."""
    tokens = _TOKEN.findall(shape)
    parts, end = _sequence(tokens, 0)
    assert end == len(tokens), shape
    options: list[list[str]] = []
    for word, is_option in _walk(parts, rng, value):
        if is_option or not options:
            options.append([word])
        else:
            options[-1].append(word)
    return options


def _sequence(tokens: list[str], at: int) -> tuple[list[object], int]:
    parts: list[object] = []
    while at < len(tokens) and tokens[at] not in ("]", "]*", ")", "|"):
        token = tokens[at]
        if token == "[":
            inner, at = _sequence(tokens, at + 1)
            parts.append(("some" if tokens[at] == "]*" else "maybe", inner))
        elif token == "(":
            choices = []
            while tokens[at] != ")":
                inner, at = _sequence(tokens, at + 1)
                choices.append(inner)
            parts.append(("one", choices))
        else:
            parts.append(token)
        at += 1
    return parts, at


def _walk(parts: list[object], rng: random.Random, value: Value) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for part in parts:
        if isinstance(part, str):
            text = _KIND.sub(lambda kind: value(kind.group(1)), part)
            found.append((text, part.startswith("-")))
            continue
        kind, inner = part  # type: ignore[misc]
        if kind == "one":
            found += _walk(rng.choice(inner), rng, value)
            continue
        count = rng.randrange(2) if kind == "maybe" else rng.choice((0, 1, 1, 2, _REPEATS_MAX))
        for _ in range(count):
            found += _walk(inner, rng, value)
    return found
