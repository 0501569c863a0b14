"""Contents of records that say nothing of people: hashed, masked or dropped.

| method | content |
|---|---|
| hash | SHA-256 in hex, or HMAC-SHA-256 with a key: the same for the same |
| mask | `***` |
| drop | none |

A hash without a key hides nothing that can be guessed: everybody can hash all telephone numbers.
"""

from __future__ import annotations

from typing import Final

HASH: Final = "hash"
DROP: Final = "drop"
MASK: Final = "mask"
METHODS: Final = (HASH, DROP, MASK)
_MASKED: Final = b"***"


def anonymised_content(content: bytes, method: str, key: bytes | None = None) -> bytes | None:
    """Return a content as it may be given away, None where it is dropped."""
    if method == DROP:
        return None
    if method == MASK:
        return _MASKED
    import hashlib
    import hmac

    digest = hashlib.sha256(content) if key is None else hmac.new(key, content, hashlib.sha256)
    return digest.hexdigest().encode()
