r"""Reader and writer of untrusted JSON: all that a strict parser would refuse is a ValueError.

Python's own reader and writer pass on what no strict parser reads, and stop in the middle of what
is nested deeply. Here each of these is a ValueError that says why.

| content | why |
|---|---|
| `NaN`, `Infinity`, `1e400` | no JSON number, or none that is finite |
| `"\ud800"` | half of a surrogate pair, which has no form in UTF-8 |
| lists and objects deeper than JSON_DEPTH_MAX | writers and searches go down level by level |
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, TypeAlias

from engine.limits import JSON_DEPTH_MAX

#: An object of a document, as Python reads it. Its readers check what they take from it.
JsonObject: TypeAlias = dict[str, Any]

TOO_DEEP: Final = f"it is nested more than {JSON_DEPTH_MAX} levels deep"


def read_json(raw: bytes | str) -> object:
    """Return a document that can be written again; raises ValueError with the reason.

    Bytes are UTF-8: the int 49 as Kafka writes it would be the document 1 in UTF-32.
    """
    import json

    text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    try:
        document = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    json_text(document)
    return document


def json_text(document: object, *, separators: tuple[str, str] | None = None) -> str:
    """Return the JSON of plain values, fit for UTF-8; raises ValueError with the reason."""
    import json

    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=separators)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    try:
        # The cheapest look for half a pair; most texts are of ASCII.
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    if text.count("[") + text.count("{") > JSON_DEPTH_MAX and is_too_deep(document):
        raise ValueError(TOO_DEEP)
    return text


def is_too_deep(document: object) -> bool:
    """Return whether lists and objects lie in each other more than JSON_DEPTH_MAX deep."""
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
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    """Return the number of a text; raises ValueError if it is infinite or no number."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is beyond the numbers of JSON's readers")
    return number
