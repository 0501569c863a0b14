"""Base64 as Java's decoders read it: the padding may be missing, any other character is refused.

Source: java.util.Base64.Decoder.
"""

from __future__ import annotations

from base64 import b64decode
from string import ascii_letters, digits
from typing import Final

from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure

_BASIC: Final = "+/"
_URL: Final = "-_"
_SHARED: Final = frozenset(f"{ascii_letters}{digits}")


def decoded(text: str) -> bytes:
    """Return the bytes of the usual alphabet; raises ToolFailure."""
    return _decoded(text, _BASIC)


def decoded_url(text: str) -> bytes:
    """Return the bytes of the alphabet for URLs and names of files; raises ToolFailure."""
    return _decoded(text, _URL)


def _decoded(text: str, specials: str) -> bytes:
    if len(text) == 1:
        raise _refused("Input byte[] should at least have 2 bytes for base64 bytes")
    bare = text.rstrip("=")
    for character in bare:
        if character not in _SHARED and character not in specials:
            raise _refused(f"Illegal base64 character {ord(character):x}")
    if len(bare) % 4 == 1:
        raise _refused("Last unit does not have enough valid bits")
    return b64decode(bare + "=" * (-len(bare) % 4), altchars=specials)


def _refused(message: str) -> ToolFailure:
    return ToolFailure(ILLEGAL_ARGUMENT, message)
