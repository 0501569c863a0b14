"""Generation of random passwords."""

from __future__ import annotations

import string
from typing import Final

from engine.host.ports import Entropy

_ALPHABET: Final = string.ascii_letters + string.digits
#: 62^32 are 190 bits, so that SCRAM-SHA-256 hashes cannot be broken by search.
_LENGTH: Final = 32


def random_password(entropy: Entropy) -> str:
    """Return a random password of letters and digits, which needs no quotes."""
    return "".join(_ALPHABET[entropy.random_below(len(_ALPHABET))] for _ in range(_LENGTH))
