"""Sizes in bytes on the command line."""

from __future__ import annotations

import re
from typing import Final

from kctl.arguments import UnreadableArgument
from kctl.numbers import INT64_MAX, shortened

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

#: More digits than any size has; longer numbers are not parsed.
_SIZE: Final = r"0*(\d{1,30})(?:\.(\d{1,30}))?\s*([kmgt]i?)?(?:b(?:/s)?)?"

_NAMES: Final = {
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}


def exact_bytes_text(size_bytes: int) -> str:
    """Return a size in the unit with the smallest whole number: `1500 kB`, `1 MiB`.

    `parse_bytes` of it returns the same number.
    """
    texts = {size_bytes: "B"}
    for name, unit in _NAMES.items():
        if size_bytes and size_bytes % unit == 0:
            texts.setdefault(size_bytes // unit, name)
    count = min(texts)
    return f"{count} {texts[count]}"


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as 50MB, 1.5GiB or 1000000, rounded to a whole number.

    Errors: UnreadableArgument, also above 2^63 - 1.
    """
    match = re.fullmatch(_SIZE, text.strip().lower(), re.ASCII)
    if match is None:
        raise UnreadableArgument("a number of bytes", shortened(text), "50MB, 1.5GiB or 1000000")
    whole, fraction = match[1], match[2] or ""
    # With whole numbers: floats above 2^53 are not exact.
    parts, scale = int(whole + fraction) * _UNITS[match[3] or ""], 10 ** len(fraction)
    size_bytes: int = (2 * parts + scale) // (2 * scale)
    if size_bytes > INT64_MAX:
        raise UnreadableArgument("a number of bytes", shortened(text), f"at most {INT64_MAX}")
    return size_bytes
