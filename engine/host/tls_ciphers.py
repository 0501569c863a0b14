"""TLS ciphers by Java's names, which are IANA's, converted to OpenSSL's.

| ciphers named | versions of TLS | ciphers used |
|---|---|---|
| none | all that are set | OpenSSL's own |
| of TLS 1.2 alone | 1.2 | the named ones |
| of TLS 1.3 alone | 1.3 | all three: Python cannot disable one of them |
| of both | both | the named ones of 1.2, all three of 1.3 |

Source: RFC 5246, RFC 8446 §B.4; SslFactory of 3.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from engine.errors import EngineError

#: The ciphers of TLS 1.3 that OpenSSL enables by default.
_OF_1_3: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
#: No cipher: Java's clients list it to signal that they renegotiate safely.
_SIGNAL: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
_NAME: Final = re.compile(r"TLS_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_([A-Z0-9_]+)")
_ENCRYPTIONS: Final = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}


class BadCiphers(EngineError):
    """Ciphers that OpenSSL does not have, or cannot enable alone."""


class CipherChoice(NamedTuple):
    """The TLS versions with at least one enabled cipher, and OpenSSL's list for TLS 1.2."""

    versions: tuple[str, ...]
    #: None: OpenSSL's default list.
    of_1_2: str | None


def choose_ciphers(names: Sequence[str], versions: Sequence[str]) -> CipherChoice:
    """Return the TLS versions and ciphers to set for Java's cipher names; raises BadCiphers.

    A version without any named cipher is disabled, as in Java.
    """
    wanted = [name for name in names if name != _SIGNAL]
    if not wanted:
        return CipherChoice(tuple(versions), None)
    of_1_3 = {name for name in wanted if name in _OF_1_3}
    of_1_2 = [_to_openssl_name(name) for name in wanted if name not in _OF_1_3]
    has = {"TLSv1.3": bool(of_1_3), "TLSv1.2": bool(of_1_2)}
    left = tuple(version for version in versions if has[version])
    if not left:
        raise BadCiphers(f"has no cipher of {', '.join(versions)}")
    if "TLSv1.3" in left and len(of_1_3) < len(_OF_1_3):
        raise BadCiphers(f"must have all of TLS 1.3 or none: {', '.join(_OF_1_3)}")
    return CipherChoice(left, ":".join(dict.fromkeys(of_1_2)) or None)


def _to_openssl_name(name: str) -> str:
    """Return OpenSSL's name for Java's name of a TLS 1.2 cipher; raises BadCiphers without one."""
    match = _NAME.fullmatch(name)
    encryption = None if match is None else _ENCRYPTIONS.get(match[2])
    if match is not None and encryption is not None:
        exchange = "" if match[1] == "RSA" else f"{match[1].replace('_', '-')}-"
        if f"{exchange}{encryption}" in _openssl_ciphers():
            return f"{exchange}{encryption}"
    raise BadCiphers(f"OpenSSL has no {name}")


@cache
def _openssl_ciphers() -> frozenset[str]:
    """Return the names of all ciphers that this OpenSSL has."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL")
    return frozenset(cipher["name"] for cipher in context.get_ciphers())
