r"""Reading and writing of untrusted JSON; content that strict parsers reject raises ValueError.

Python's own reader and writer accept content that strict parsers reject, and raise RecursionError
for deep nesting. Here each of these raises ValueError with the reason.

| content | reason |
|---|---|
| `NaN`, `Infinity`, `1e400` | not a JSON number, or not finite |
| `"\ud800"` | half of a surrogate pair, which cannot be encoded in UTF-8 |
| lists and objects deeper than JSON_DEPTH_MAX | writers and searches recurse into each level |
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, TypeAlias

from engine.limits import JSON_DEPTH_MAX

#: A parsed JSON object. Its users check the types of its values.
JsonObject: TypeAlias = dict[str, Any]

TOO_DEEP: Final = f"it is nested more than {JSON_DEPTH_MAX} levels deep"


def read_json(raw: bytes | str) -> object:
    """Return the value of a JSON document that can also be written again.

    Raises ValueError with the reason. Bytes are always UTF-8: Python's own detection would take the
    int 49 as Kafka writes it for the document 1 in UTF-32.
    """
    import json

    text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    try:
        document = json.loads(text, parse_constant=_no_constant, parse_float=_parse_finite)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    json_text(document)
    return document


def json_text(document: object, *, separators: tuple[str, str] | None = None) -> str:
    """Return JSON's plain types as JSON text that can be encoded in UTF-8.

    Raises ValueError with the reason: NaN or infinity, half of a surrogate pair, too deep nesting.
    `separators` are those of `json.dumps`, None means its default.
    """
    import json

    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=separators)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    try:
        # The cheapest check for half a pair; most texts are ASCII.
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    if text.count("[") + text.count("{") > JSON_DEPTH_MAX and is_too_deep(document):
        raise ValueError(TOO_DEEP)
    return text


def is_too_deep(document: object) -> bool:
    """Return True if lists and objects are nested more than JSON_DEPTH_MAX deep."""
    level = [document]
    for _ in range(JSON_DEPTH_MAX + 1):
        containers = [item for item in level if isinstance(item, dict | list | tuple)]
        if not containers:
            return False
        level = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
        ]
    return True


def _no_constant(name: str) -> object:
    """Raise ValueError for NaN or Infinity, which Python's parser would accept."""
    raise ValueError(f"{name} is no JSON value")


def _parse_finite(text: str) -> float:
    """Return the number in a text; raises ValueError if it is not finite."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is beyond the numbers of JSON's readers")
    return number
