"""Ids as Kafka's Uuid.fromString reads them.

Source: org.apache.kafka.common.Uuid of 3.9.1, java.util.Base64.Decoder.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from string import ascii_letters, digits
from typing import Final

from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure

_CHARS_MAX: Final = 24
_ID_BYTES: Final = 16
_ALPHABET: Final = frozenset(f"{ascii_letters}{digits}-_")


def java_uuid(text: str) -> bytes:
    """Return the 16 bytes of an id; raises ToolFailure."""
    if len(text) > _CHARS_MAX:
        raise _refused(
            f"Input string with prefix `{text[:_CHARS_MAX]}` is too long to be decoded as a "
            "base64 UUID"
        )
    raw = _decoded(text)
    if len(raw) != _ID_BYTES:
        raise _refused(
            f"Input string `{text}` decoded as {len(raw)} bytes, which is not equal to the "
            f"expected {_ID_BYTES} bytes of a base64-encoded UUID"
        )
    return raw


def _decoded(text: str) -> bytes:
    if len(text) == 1:
        raise _refused("Input byte[] should at least have 2 bytes for base64 bytes")
    bare = text.rstrip("=")
    for character in bare:
        if character not in _ALPHABET:
            raise _refused(f"Illegal base64 character {ord(character):x}")
    if len(bare) % 4 == 1:
        raise _refused("Last unit does not have enough valid bits")
    return urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def _refused(message: str) -> ToolFailure:
    return ToolFailure(ILLEGAL_ARGUMENT, message)
