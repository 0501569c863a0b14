"""Java's own key store format (JKS).

```
fe ed fe ed | version | count | entries | SHA-1 of the password, a phrase and all before it
entry   1 | alias | time | encrypted key | chain        2 | alias | time | certificate
key     30 … 04 … salt of 20 bytes | key ^ stream | SHA-1 of password and key
stream  SHA-1(password, salt), SHA-1(password, the digest before), …
```

Passwords are encoded as UTF-16. Certificates are DER, after the name of their type.

Source: sun.security.provider.JavaKeyStore, KeyProtector of JDK 17.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final, NamedTuple

from engine.der import OCTET_STRING, SEQUENCE, MalformedDer, iter_der_values, read_der_value
from engine.errors import EngineError

MAGIC: Final = b"\xfe\xed\xfe\xed"
_PHRASE: Final = b"Mighty Aphrodite"
_VERSIONS: Final = (1, 2)
_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES: Final = 20


class MalformedJks(EngineError):
    """A store cannot be read."""


class JksStore(NamedTuple):
    """The first private key (PKCS #8, DER) with its chain, and the trusted certificates."""

    key: bytes | None
    chain: list[bytes]
    trusted: list[bytes]


def read_jks(content: bytes, password: str | None, key_password: str | None) -> JksStore:
    """Return the keys and certificates of a Java key store; raises MalformedJks.

    Without a password the store's digest is not checked.
    """
    if password is not None:
        body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        computed = hashlib.sha1(_utf_16(password) + _PHRASE + body, usedforsecurity=False)
        if not hmac.compare_digest(computed.digest(), digest):
            raise MalformedJks("it was changed, or the password is wrong")
    try:
        return _parse_store(_Reader(content), key_password or password or "")
    except (struct.error, MalformedDer) as error:
        raise MalformedJks("it is truncated or damaged") from error


class _Reader:
    """Reads numbers and strings from the bytes of a store, each after the last one."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def number(self) -> int:
        """Return the next four bytes as a number."""
        (number,) = struct.unpack(">I", self.read_bytes(4))
        return int(number)

    def block(self) -> bytes:
        """Return the next bytes, which follow their length of four bytes."""
        return self.read_bytes(self.number())

    def text(self) -> bytes:
        """Return the next string in UTF-8, which follows its length of two bytes."""
        return self.read_bytes(int.from_bytes(self.read_bytes(2)))

    def read_bytes(self, size: int) -> bytes:
        """Return the next `size` bytes; raises struct.error if there are fewer."""
        start, self._position = self._position, self._position + size
        taken = self._content[start : self._position]
        if len(taken) < size:
            raise struct.error
        return taken


def _parse_store(reader: _Reader, key_password: str) -> JksStore:
    """Read all entries: the first key with its chain, and the trusted certificates.

    Aliases and times are skipped. Raises MalformedJks.
    """
    if reader.read_bytes(4) != MAGIC or (version := reader.number()) not in _VERSIONS:
        raise MalformedJks("it is no JKS store")
    key: bytes | None = None
    first_chain: list[bytes] = []
    trusted = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.text()
        reader.read_bytes(8)
        if kind == _CERTIFICATE:
            trusted.append(_certificate(reader, version))
        elif kind == _KEY:
            encrypted = reader.block()
            chain = [_certificate(reader, version) for _ in range(reader.number())]
            if key is None:
                key, first_chain = _decrypt_key(encrypted, key_password), chain
        else:
            raise MalformedJks("it has an entry of another kind")
    return JksStore(key, first_chain, trusted)


def _certificate(reader: _Reader, version: int) -> bytes:
    """Return the next certificate of a store, DER.

    In a store of version 2 its type ("X.509") comes first, which is skipped.
    """
    if version > 1:
        reader.text()
    return reader.block()


def _decrypt_key(encrypted: bytes, password: str) -> bytes:
    """Decrypt a private key by Sun's own algorithm: XOR with a chain of SHA-1 digests.

    Returns PKCS#8 in DER. Raises MalformedJks if the password is wrong.
    """
    *_, data = iter_der_values(read_der_value(encrypted, SEQUENCE).content)
    if data.tag != OCTET_STRING or len(data.content) < 2 * _DIGEST_BYTES:
        raise MalformedDer
    secret = _utf_16(password)
    salt, hidden = data.content[:_DIGEST_BYTES], data.content[_DIGEST_BYTES:-_DIGEST_BYTES]
    stream = bytearray()
    digest = salt
    while len(stream) < len(hidden):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    check = hashlib.sha1(secret + key, usedforsecurity=False).digest()
    if not hmac.compare_digest(check, data.content[-_DIGEST_BYTES:]):
        raise MalformedJks("the password of its key is wrong")
    return key


def _utf_16(password: str) -> bytes:
    """Encode a password for the digests of a store: UTF-16, big-endian, no BOM."""
    return password.encode("utf-16-be")
