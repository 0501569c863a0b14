"""Numbers of bytes on the command line."""

from __future__ import annotations

import re
from typing import Final

from kctl.words import UnreadableWord

_UNITS: Final = {
    "": 1,
    "k": 1000,
    "m": 1000**2,
    "g": 1000**3,
    "t": 1000**4,
    "ki": 1024,
    "mi": 1024**2,
    "gi": 1024**3,
    "ti": 1024**4,
}


def parse_bytes(text: str) -> int:
    """Return the bytes of a text such as 50MB, 1.5GiB or 1000000; raises UnreadableWord."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?(?:b(?:/s)?)?", text.strip().lower())
    if match is None:
        raise UnreadableWord("a number of bytes", text, "50MB, 1.5GiB or 1000000")
    return round(float(match[1]) * _UNITS[match[2] or ""])
