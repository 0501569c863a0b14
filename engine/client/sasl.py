"""SASL conversations of a client: its messages, and its checks of the server's.

| mechanism | client | server |
|---|---|---|
| PLAIN | NUL user NUL password | empty |
| OAUTHBEARER | `n,,^Aauth=Bearer <token>^A^A` | empty, or JSON with the error |
| SCRAM 1 | `n,,n=<user>,r=<client nonce>` | `r=<both nonces>,s=<salt>,i=<iterations>` |
| SCRAM 2 | `c=biws,r=<both nonces>,p=<proof>` | `v=<signature>` or `e=<error>` |

A delegation token adds `,tokenauth=true` to the first message of SCRAM.

Source: RFC 4616, RFC 5802, KIP-84, KIP-48. Differs: names and passwords are used as UTF-8 without
SASLprep, as by Kafka's own client.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from engine.client.errors import AuthenticationFailed
from engine.client.oauth_login import OAUTHBEARER, OAuthLogin, request_access_token
from engine.host.ports import Entropy
from engine.limits import SCRAM_ITERATIONS_MAX

#: SCRAM mechanisms and their hashes.
SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_BY_TOKEN: Final = b",tokenauth=true"
_ITERATIONS_MIN = 4096
_NONCE_BYTES = 24


class SaslSettings(NamedTuple):
    """A client's mechanism and credentials; the password never shows in a repr."""

    mechanism: str
    username: str
    password: str
    #: Whether username and password are the id of a delegation token and its HMAC in base64.
    is_token: bool = False
    #: The source of the access token, for OAUTHBEARER.
    oauth: OAuthLogin | None = None

    def __repr__(self) -> str:
        """Return the settings without the password."""
        return f"SaslSettings({self.mechanism}, {self.username})"


class SaslConversation(Protocol):
    """The client's side of one authentication."""

    mechanism: str
    #: Whether a delegation token authenticates: its sessions always expire.
    is_token: bool

    def first(self) -> bytes:
        """Return the client's first SASL message."""
        ...

    def response_to(self, challenge: bytes) -> bytes | None:
        """Return the client's next SASL message to the broker's `challenge`; None at the end.

        Raises AuthenticationFailed if the broker reports an error or its message is wrong.
        """
        ...


class PlainConversation:
    """PLAIN sends the password itself: only safe on encrypted connections."""

    mechanism = "PLAIN"
    is_token = False

    def __init__(self, username: str, password: str) -> None:
        self._message = b"\x00" + username.encode() + b"\x00" + password.encode()

    def first(self) -> bytes:
        """Return the only message of PLAIN: user name and password."""
        return self._message

    def response_to(self, challenge: bytes) -> bytes | None:
        """Return None: the broker's empty response means success."""
        return None


class ScramConversation:
    """SCRAM: client and server prove that they know the password, which is never sent."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        nonce: bytes,
        *,
        is_token: bool = False,
    ) -> None:
        """Start a conversation; `nonce` is printable, random and used once.

        With `is_token` name and password are the id of a delegation token and its HMAC in base64.
        """
        self.mechanism = mechanism
        self.is_token = is_token
        self._hash = SCRAM_HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C").encode()
        #: The client-first-message-bare of RFC 5802, which is part of the signed message.
        self._first_bare = b"n=" + name + b",r=" + nonce + (_BY_TOKEN if is_token else b"")
        #: The signature of a server that knows the password; None before its challenge.
        self._expected_signature: bytes | None = None

    def first(self) -> bytes:
        """Return the client-first message of RFC 5802."""
        return b"n,," + self._first_bare

    def response_to(self, challenge: bytes) -> bytes | None:
        """Return the client-final message to the server-first one; None after the server-final one.

        Raises AuthenticationFailed if the server refuses, or if its signature is wrong.
        """
        fields = self._fields(challenge)
        if b"e" in fields:
            raise AuthenticationFailed(self.mechanism, fields[b"e"].decode(errors="replace"))
        if self._expected_signature is None:
            return self._prove(challenge, fields)
        self._verify(fields)
        return None

    def _fields(self, message: bytes) -> dict[bytes, bytes]:
        """Return the values of a SCRAM message by their one-letter names."""
        return {part[:1]: part[2:] for part in message.split(b",") if part[1:2] == b"="}

    def _prove(self, challenge: bytes, fields: dict[bytes, bytes]) -> bytes:
        """Return the client-final message, and keep the server signature to expect (RFC 5802)."""
        import hashlib
        import hmac

        nonce, salt, iterations = self._parse_challenge(fields)
        without_proof = b"c=biws,r=" + nonce
        auth_message = b",".join((self._first_bare, challenge, without_proof))
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, auth_message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._expected_signature = hmac.digest(server_key, auth_message, self._hash)
        return without_proof + b",p=" + _base64(proof)

    def _parse_challenge(self, fields: dict[bytes, bytes]) -> tuple[bytes, bytes, int]:
        """Return nonce, salt and iterations of the server's first message.

        Raises AuthenticationFailed.
        """
        from binascii import Error, a2b_base64

        nonce = fields.get(b"r", b"")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed(self.mechanism, "the broker did not extend our nonce")
        try:
            salt = a2b_base64(fields.get(b"s", b""), strict_mode=True)
            iterations = int(fields.get(b"i", b"0"))
        except (Error, ValueError):
            raise AuthenticationFailed(self.mechanism, "unreadable salt or iterations") from None
        if not _ITERATIONS_MIN <= iterations <= SCRAM_ITERATIONS_MAX:
            raise AuthenticationFailed(
                self.mechanism, f"{iterations} iterations, outside what is safe to follow"
            )
        return nonce, salt, iterations

    def _verify(self, fields: dict[bytes, bytes]) -> None:
        """Check the broker's signature; raises AuthenticationFailed unless it has the password."""
        import hmac

        expected = _base64(self._expected_signature or b"")
        if not hmac.compare_digest(fields.get(b"v", b""), expected):
            raise AuthenticationFailed(self.mechanism, "the broker does not know the password")


class OAuthConversation:
    """OAUTHBEARER sends an access token: only safe on encrypted connections."""

    mechanism = OAUTHBEARER
    is_token = False

    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        """Return the only message of OAUTHBEARER, with the access token."""
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def response_to(self, challenge: bytes) -> bytes | None:
        """Return None for the broker's empty response; raise AuthenticationFailed for any other."""
        if challenge:
            raise AuthenticationFailed(self.mechanism, challenge.decode(errors="replace"))
        return None


def create_conversation(
    sasl: SaslSettings, entropy: Entropy, now_ms: int | None = None
) -> SaslConversation:
    """Return a new SASL conversation for the configured mechanism.

    `now_ms` is the issue time of an unsecured OAuth token (None: now). Raises AuthenticationFailed
    if no access token can be obtained.
    """
    mechanism, username, password, is_token, oauth = sasl
    if oauth is not None:
        return OAuthConversation(request_access_token(oauth, now_ms))
    if mechanism == PlainConversation.mechanism:
        return PlainConversation(username, password)
    nonce = entropy.random_bytes(_NONCE_BYTES).hex().encode()
    return ScramConversation(mechanism, username, password, nonce, is_token=is_token)


def _base64(raw: bytes) -> bytes:
    """Return bytes in base64, without a line end."""
    from binascii import b2a_base64

    return b2a_base64(raw, newline=False)
