"""Parse ids like Kafka's Uuid.fromString.

Source: org.apache.kafka.common.Uuid of 3.9.1.
"""

from __future__ import annotations

from typing import Final

from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_base64 import decoded_url
from kctl.compat.java_failures import ToolFailure

_CHARS_MAX: Final = 24
_ID_BYTES: Final = 16


def java_uuid(text: str) -> bytes:
    """Parse Kafka's text of a UUID, 22 characters of base64, into its 16 bytes.

    Errors: ToolFailure with the message of Java's Uuid.fromString.
    """
    if len(text) > _CHARS_MAX:
        raise _refused(
            f"Input string with prefix `{text[:_CHARS_MAX]}` is too long to be decoded as a "
            "base64 UUID"
        )
    raw = decoded_url(text)
    if len(raw) != _ID_BYTES:
        raise _refused(
            f"Input string `{text}` decoded as {len(raw)} bytes, which is not equal to the "
            f"expected {_ID_BYTES} bytes of a base64-encoded UUID"
        )
    return raw


def _refused(message: str) -> ToolFailure:
    """Return the failure for a text that is no UUID."""
    return ToolFailure(ILLEGAL_ARGUMENT, message)
