"""Ids of topics, clusters and directories as text: 16 bytes in base64url, without padding.

Source: Kafka's Uuid.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Final

from engine.errors import EngineError

_CHARS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = str.maketrans("-_", "+/")
_UUID_CHARS: Final = 22
_UUID_BYTES: Final = 16


class InvalidUuid(EngineError):
    """Raised for a text that is not an id in Kafka's format."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:100]!r} is not an id of {_UUID_CHARS} characters")
        self.text = text


def uuid_text(raw: bytes) -> str:
    """Return an id of 16 bytes, such as a topic id, in Kafka's text format: base64url, unpadded."""
    assert len(raw) == _UUID_BYTES
    return b2a_base64(raw, newline=False).translate(_TO_URL).decode("ascii").rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of an id in Kafka's text format; raises InvalidUuid."""
    if len(text) != _UUID_CHARS or not _CHARS.issuperset(text):
        raise InvalidUuid(text)
    return a2b_base64(text.translate(_FROM_URL) + "==")
