"""Decoding, hashing and formatting of text as in Java.

Bytes that are not UTF-8 become U+FFFD by Java's rules. Java and Python replace different numbers of
bytes by one U+FFFD:

| bytes | Java | Python |
|---|---|---|
| a surrogate, `ED A0..BF xx`, also cut short | one | one per byte |
| `F0 8x`, `F4 9x..`, `F5..` followed by continuation bytes | one for the first byte | the same |
| a sequence cut short | one for its valid prefix | the same |

Source: java.lang.String decoding of UTF-8 (JDK 17), checked against it byte by byte.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

_UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_REPLACEMENT = "�".encode()

# A surrogate, or its first two bytes: the only case in which the two languages differ.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def encode_printable(raw: bytes) -> bytes:
    """Return the bytes that Java prints for UTF-8 bytes of a key or value.

    Invalid sequences become the bytes of U+FFFD, as Java decodes the bytes before it prints them.
    """
    if raw.isascii():
        return raw
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return _replaced(raw)
    return raw


def decode_java_utf8(raw: bytes | memoryview) -> str:
    """Decode bytes from UTF-8 as Java does: invalid bytes become U+FFFD."""
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        return _replaced(bytes(raw)).decode("utf-8")


def _replaced(raw: bytes) -> bytes:
    # A surrogate never overlaps a longer sequence, because ED is no continuation byte.
    """Return the UTF-8 bytes with each invalid sequence replaced by U+FFFD, as Java does."""
    whole = _SURROGATE.sub(_REPLACEMENT, raw)
    return whole.decode("utf-8", "replace").encode("utf-8")


def java_length(text: str) -> int:
    """Return Java's `String.length` of a text: a character above U+FFFF counts as two.

    Kafka limits the length of some fields by it.
    """
    return len(text) if text.isascii() else len(text.encode(_UTF_16, "surrogatepass")) // 2


def java_string_hash(text: str) -> int:
    """Return Java's String.hashCode: computed over UTF-16 units, an int32."""
    value = 0
    if text.isascii():
        units: Iterable[int] = text.encode("ascii")
    else:
        units = memoryview(text.encode(_UTF_16, "surrogatepass")).cast("H")
    for unit in units:
        value = (31 * value + unit) & 0xFFFF_FFFF
    return (value ^ 0x8000_0000) - 0x8000_0000


def format_java_address(address: str) -> str:
    """Return an IP address in Java's format: IPv6 with all eight numbers; other text is unchanged.

    Source: InetAddress.getHostAddress.
    """
    from ipaddress import IPv6Address

    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    raw = parsed.packed
    return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, len(raw), 2))
