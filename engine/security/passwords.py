"""Generate random passwords."""

from __future__ import annotations

import string
from typing import Final

from engine.host.ports import Entropy

_ALPHABET: Final = string.ascii_letters + string.digits
#: 62^32 are 190 bits: more than a search through hashes of SCRAM-SHA-256 can ever try.
_LENGTH: Final = 32


def random_password(entropy: Entropy) -> str:
    """Return a password of letters and digits, which no shell and no JAAS file needs quoted."""
    return "".join(_ALPHABET[entropy.random_below(len(_ALPHABET))] for _ in range(_LENGTH))
