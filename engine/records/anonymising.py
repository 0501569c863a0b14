"""Anonymise the contents of records: hash, mask or drop.

| method | result |
|---|---|
| hash | SHA-256 in hex, or HMAC-SHA-256 with a key; equal contents get equal hashes |
| mask | `***` |
| drop | None |

A hash without a key does not protect contents that can be guessed: anybody can hash all telephone
numbers.
"""

from __future__ import annotations

from typing import Final

HASH: Final = "hash"
DROP: Final = "drop"
MASK: Final = "mask"
METHODS: Final = (HASH, DROP, MASK)
_MASKED: Final = b"***"


def anonymise_content(content: bytes, method: str, key: bytes | None = None) -> bytes | None:
    """Return a content hashed or masked, None for the method DROP.

    With a `key` the hash is an HMAC, so that contents cannot be guessed by hashing them.
    """
    if method == DROP:
        return None
    if method == MASK:
        return _MASKED
    import hashlib
    import hmac

    digest = hashlib.sha256(content) if key is None else hmac.new(key, content, hashlib.sha256)
    return digest.hexdigest().encode()
