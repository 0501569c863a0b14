"""DIGEST-MD5, the SASL mechanism of ZooKeeper's clients: the messages of both sides. Pure.

```
client  empty
server  realm="…",nonce="…",charset=utf-8,algorithm=md5-sess        qop="auth" is optional
client  charset=utf-8,username="…",realm="…",nonce="…",nc=00000001,cnonce="…",digest-uri="…",
        response=…,qop=auth                      Java's client has authzid="…" too, and in A1
server  rspauth=…
```

```
A1 = MD5(user:realm:password):nonce:cnonce[:authzid]
A2 = AUTHENTICATE:digest-uri, of rspauth :digest-uri
response = MD5(hex MD5(A1):nonce:00000001:cnonce:auth:hex MD5(A2))
```

In A1, names and passwords are encoded in ISO 8859-1 if possible, else in UTF-8.

Source: RFC 2831; DigestMD5Client and DigestMD5Server of Java.
Differs: only authentication, without integrity or privacy protection, which ZooKeeper does not use.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.errors import EngineError

_FIELD: Final = re.compile(
    r'[\s,]*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?=,|$)', re.I | re.S
)
_COUNT: Final = "00000001"
_QOP: Final = "auth"


class DigestRefused(EngineError):
    """Raised for an invalid DIGEST-MD5 message or a wrong proof; it has no secrets."""


class DigestLogin(NamedTuple):
    """User name, password and URI of a login; the password is not in the repr."""

    username: str
    password: str
    #: Service and host: `zookeeper/zk-sasl-md5`.
    uri: str

    def __repr__(self) -> str:
        return f"DigestLogin({self.username}, {self.uri})"


class DigestAnswer(NamedTuple):
    """A client's response, and the proof that the server must return."""

    message: bytes
    rspauth: bytes


def answer_challenge(challenge: bytes, login: DigestLogin, cnonce: str) -> DigestAnswer:
    """Return a client's response to a server's challenge, and the server's expected confirmation.

    `cnonce` is random. Raises DigestRefused.
    """
    fields = _parse_fields(challenge)
    nonce = fields.get("nonce")
    if not nonce or fields.get("algorithm", "").lower() != "md5-sess":
        raise DigestRefused("the server's challenge is none of DIGEST-MD5")
    if _QOP not in re.split(r"[\s,]+", fields.get("qop", _QOP).lower()):
        raise DigestRefused("the server wants more than authentication of DIGEST-MD5")
    exchange = _Exchange(login.username, fields.get("realm", ""), nonce, cnonce, login.uri)
    proof = exchange.proof(login.password)
    quoted = {
        "username": login.username,
        "realm": exchange.realm,
        "nonce": nonce,
        "cnonce": cnonce,
        "digest-uri": login.uri,
    }
    parts = [f'{name}="{_quote(value)}"' for name, value in quoted.items()]
    parts = ["charset=utf-8", *parts, f"nc={_COUNT}", f"qop={_QOP}", f"response={proof}"]
    return DigestAnswer(
        ",".join(parts).encode(), f"rspauth={exchange.seal(login.password)}".encode()
    )


def challenge_of(realm: str, nonce: str) -> bytes:
    """Return the challenge with which a server begins a login."""
    fields = f'realm="{realm}",nonce="{nonce}",qop="{_QOP}",charset=utf-8,algorithm=md5-sess'
    return fields.encode()


def check_answer(
    message: bytes, users: Mapping[str, str], realm: str, nonce: str, uri: str
) -> tuple[str, bytes]:
    """Check a client's response; return its user name and the server's last message.

    An unknown user takes as long as a wrong password. Raises DigestRefused.
    """
    fields = _parse_fields(message)
    expected = {"realm": realm, "nonce": nonce, "digest-uri": uri, "nc": _COUNT}
    has_all = all(fields.get(name) == value for name, value in expected.items())
    if not has_all or fields.get("qop", _QOP) != _QOP or not fields.get("cnonce"):
        raise DigestRefused("the client's response is none to this server's challenge")
    username = fields.get("username", "")
    password = users.get(username)
    exchange = _Exchange(username, realm, nonce, fields["cnonce"], uri, fields.get("authzid"))
    proof = exchange.proof(password or "")
    is_right = hmac.compare_digest(proof.encode(), fields.get("response", "").encode())
    if password is None or not is_right:
        raise DigestRefused("there is no such user, or the password is wrong")
    return username, f"rspauth={exchange.seal(password)}".encode()


class _Exchange(NamedTuple):
    """The parameters of an exchange, except for the password."""

    username: str
    realm: str
    nonce: str
    cnonce: str
    uri: str
    #: The client's authorization id, which only affects the proofs.
    authzid: str | None = None

    def proof(self, password: str) -> str:
        """Return the client's proof that it has the password."""
        return self._digest(password, f"AUTHENTICATE:{self.uri}")

    def seal(self, password: str) -> str:
        """Return the server's proof that it has the password too."""
        return self._digest(password, f":{self.uri}")

    def _digest(self, password: str, a2: str) -> str:
        """Return the hash of RFC 2831 for qop=auth; `a2` differs between client and server."""
        secret = b":".join(_encode_narrow(text) for text in (self.username, self.realm, password))
        a1 = _create_md5(secret).digest() + f":{self.nonce}:{self.cnonce}".encode()
        if self.authzid is not None:
            a1 += f":{self.authzid}".encode()
        last = _create_md5(a2.encode()).hexdigest()
        parts = (_create_md5(a1).hexdigest(), self.nonce, _COUNT, self.cnonce, _QOP, last)
        return _create_md5(":".join(parts).encode()).hexdigest()


def _create_md5(content: bytes) -> hashlib._Hash:
    """Return an MD5 hash of the content, even where OpenSSL forbids MD5 for security (FIPS)."""
    return hashlib.md5(content, usedforsecurity=False)


def _encode_narrow(text: str) -> bytes:
    """Return a text in ISO 8859-1 if possible, else in UTF-8, as the protocol requires."""
    try:
        return text.encode("iso-8859-1")
    except UnicodeEncodeError:
        return text.encode()


def _quote(text: str) -> str:
    """Return a text for a quoted string, with quotes and backslashes escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _parse_fields(message: bytes) -> dict[str, str]:
    """Return the fields of a challenge or response by lower-case name; raises DigestRefused."""
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise DigestRefused("a message of DIGEST-MD5 is not UTF-8") from error
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None or match[1].lower() in fields:
            raise DigestRefused("a message has no fields of DIGEST-MD5")
        quoted = match[2]
        value = match[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.S)
        fields[match[1].lower()] = value
        position = match.end()
    return fields
