"""Base64 as Java's decoders parse it: padding may be missing, and nothing may follow it.

| position of the first `=` in a unit of four | result |
|---|---|
| first | error: wrong unit |
| second | error: not enough bits |
| third | error: wrong unit, unless another `=` follows |
| fourth | end of the data |

Source: java.util.Base64.Decoder of Java 17.
"""

from __future__ import annotations

from base64 import b64decode
from string import ascii_letters, digits
from typing import Final

from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure

_BASIC: Final = "+/"
_URL: Final = "-_"
_SHARED: Final = f"{ascii_letters}{digits}"
_PADDING: Final = "="


def decoded(text: str) -> bytes:
    """Decode base64 like Java's basic decoder; raises ToolFailure with its message."""
    return _decode(text, _BASIC)


def decoded_url(text: str) -> bytes:
    """Decode base64 in the alphabet for URLs, like Java; raises ToolFailure with its message."""
    return _decode(text, _URL)


def _decode(text: str, specials: str) -> bytes:
    """Decode a text; `specials` are the two characters of the alphabet besides alphanumerics.

    Raises ToolFailure with the message of Java's decoder.
    """
    if len(text) == 1:
        raise _refused("Input byte[] should at least have 2 bytes for base64 bytes")
    bare, padding, _ = text.partition(_PADDING)
    for character in bare:
        if character not in _SHARED and character not in specials:
            raise _refused(f"Illegal base64 character {_signed_hex(character)}")
    end = len(bare) + len(padding)
    unit = len(bare) % 4
    if padding:
        if unit == 2:
            end += 1
        if unit == 0 or (unit == 2 and text[end - 1 : end] != _PADDING):
            raise _refused("Input byte array has wrong 4-byte ending unit")
    if unit == 1:
        raise _refused("Last unit does not have enough valid bits")
    if end < len(text):
        raise _refused(f"Input byte array has incorrect ending byte at {end}")
    return b64decode(bare + _PADDING * (-len(bare) % 4), altchars=specials)


def _signed_hex(character: str) -> str:
    """Return a character's Latin-1 byte in hex, as the signed number that Java prints."""
    (byte,) = character.encode("latin-1", "replace")
    return f"{byte - 256 if byte > 127 else byte:x}"


def _refused(message: str) -> ToolFailure:
    """Return the failure that Java's decoder raises with this message."""
    return ToolFailure(ILLEGAL_ARGUMENT, message)
