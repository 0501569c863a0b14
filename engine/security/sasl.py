"""The server side of SASL mechanisms: the responses to a client's tokens, and its user.

| mechanism | client | server |
|---|---|---|
| PLAIN | authorization id NUL user NUL password | empty |
| SCRAM 1 | `n,,n=<user>,r=<nonce>` | `r=<both nonces>,s=<salt>,i=<iterations>` |
| SCRAM 2 | `c=biws,r=<both nonces>,p=<proof>` | `v=<signature>` |

OAUTHBEARER is in `oauth_sasl.py`.

Delegation tokens authenticate by SCRAM: `n,,n=<token id>,r=<nonce>,tokenauth=true`.

| error | the client gets |
|---|---|
| SaslFailed | the reason, after a delay |
| CredentialsWrong | a failure without a reason, after a delay |
| TokenBroken | no response: the connection is closed |

Source: RFC 4616, RFC 5802; PlainSaslServer, ScramSaslServer, ScramMessages, SaslServerAuthenticator
of 3.9.1.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from engine.errors import EngineError
from engine.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
#: The mechanisms that a listener can have.
MECHANISMS: Final = (PLAIN, *(mechanism.key for mechanism in ScramMechanism), OAUTHBEARER)
_NONCE_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_OTHER_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)

_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
#: Possessive quantifiers, because no name contains its end character: otherwise Python keeps 170
#: bytes per backtracking point.
_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSION: Final = rf"[A-Za-z]++={_VALUE}+"
_TOKEN_EXTENSION: Final = re.compile(r",tokenauth=(?i:true)(?:,|$)")
_CHARACTER: Final = "[a-zA-Z0-9/+]"
_BASE64: Final = rf"(?:{_CHARACTER}{{4}})*+(?:{_CHARACTER}{{3}}=|{_CHARACTER}{{2}}==)?"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,(?:m={_VALUE},)?"
    rf"n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>(?:,{_EXTENSION})*+)"
)
_CLIENT_FINAL: Final = re.compile(
    rf"c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?:,(?!p={_BASE64}\Z){_EXTENSION})*+,p=(?P<proof>{_BASE64})"
)


class SaslFailed(EngineError):
    """Authentication failed, and the client gets the reason."""


class CredentialsWrong(EngineError):
    """Authentication failed, and the client gets no reason; the message is for the log."""


class TokenBroken(EngineError):
    """A SASL token is malformed."""


class TokenLogin(NamedTuple):
    """The login by a delegation token: the owner's name, the credential and the lifetime."""

    owner: str
    credential: ScramCredential
    lifetime_ms: int


def _no_token(_token_id: str) -> TokenLogin | None:
    """Return None, because the listener has no delegation tokens."""
    return None


class SaslServer(Protocol):
    """One authentication of a client."""

    #: The authenticated user; None until the authentication is complete.
    user: str | None
    #: Whether a delegation token was used, which has fewer permissions.
    is_token: bool
    #: The lifetime of the credential in ms; None without a limit, 0 if expired.
    lifetime_ms: int | None

    def response_to(self, token: bytes) -> bytes:
        """Return the response to a client's message.

        Authentication is complete once `user` is set. After SaslFailed, CredentialsWrong or
        TokenBroken the caller must not pass another message.
        """
        ...


class PlainServer:
    """PLAIN: the client sends its password."""

    def __init__(self, password_of: Callable[[str], str | None]) -> None:
        """Create the server of one PLAIN login.

        `password_of` returns a user's password, None for an unknown user.
        """
        self.user: str | None = None
        self.is_token = False
        self.lifetime_ms: int | None = None
        self._password_of = password_of

    def response_to(self, token: bytes) -> bytes:
        """Return an empty response if the password is correct, else raise SaslFailed."""
        tokens = token.decode("utf-8", "replace").split("\0", 3)
        if len(tokens) != 3:
            raise SaslFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, user, password = tokens
        if not user:
            raise SaslFailed("Authentication failed: username not specified")
        if not password:
            raise SaslFailed("Authentication failed: password not specified")
        expected = self._password_of(user)
        # Compared for an unknown user too, so that it takes as long.
        is_right = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not is_right:
            raise SaslFailed("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslFailed(_OTHER_AUTHORIZATION_ID)
        self.user = user
        return b""


class ScramServer:
    """SCRAM: both sides prove that they know the password.

    As in Kafka, an unknown user is rejected after the first message, before any proof, with the
    same message as for a wrong proof.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: Callable[[str], ScramCredential | None],
        nonce: str,
        token_of: Callable[[str], TokenLogin | None] = _no_token,
    ) -> None:
        """Create the server of one SCRAM login.

        `credential_of` returns a user's credential, `token_of` the login of a delegation token;
        both
        return None for an unknown one. `nonce` is random and used once.
        """
        #: The authenticated user; None before the client's proof is verified.
        self.user: str | None = None
        #: Whether a delegation token has authenticated its owner.
        self.is_token = False
        self.lifetime_ms: int | None = None
        self._token_of = token_of
        self._hash_name = mechanism.hash_name
        self._credential_of = credential_of
        self._nonce = nonce
        #: The user's credential; None before the client's first message.
        self._credential: ScramCredential | None = None
        self._name = ""
        #: Start of the signed message: the first messages of client and server.
        self._auth_message_start = ""
        #: The client's and the server's nonce, which the client must repeat.
        self._both_nonces = ""

    def response_to(self, token: bytes) -> bytes:
        """Return the response to a client's message.

        The first response is the challenge, the second one the server's signature.

        Raises CredentialsWrong, SaslFailed or TokenBroken if the client is rejected.
        """
        text = token.decode("utf-8", "replace")
        if self._credential is None:
            return self._begin(text)
        return self._verify(text, self._credential)

    def _begin(self, text: str) -> bytes:
        """Return the challenge to the client's first message, which names the user or token.

        Raises CredentialsWrong or SaslFailed if it is rejected.
        """
        match = _CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise CredentialsWrong("Invalid SCRAM client first message format")
        extensions = match["extensions"]
        user = _decode_user(match["name"])
        if _TOKEN_EXTENSION.search(extensions):
            token = self._token_of(user)
            if token is None:
                raise CredentialsWrong("Token Authentication failed: Invalid tokenId")
            self._name, self.is_token = token.owner, True
            self.lifetime_ms = token.lifetime_ms
            credential: ScramCredential | None = token.credential
        else:
            self._name = user
            credential = self._credential_of(user)
        if credential is None:
            raise CredentialsWrong("Authentication failed: Invalid user credentials")
        if match["authorization_id"] not in (None, user):
            raise SaslFailed(_OTHER_AUTHORIZATION_ID)
        if credential.iterations < ITERATIONS_MIN:
            raise CredentialsWrong(
                f"Iterations {credential.iterations} is less than the minimum {ITERATIONS_MIN}"
            )
        self._credential = credential
        self._both_nonces = match["nonce"] + self._nonce
        salt = b64encode(credential.salt).decode()
        challenge = f"r={self._both_nonces},s={salt},i={credential.iterations}"
        self._auth_message_start = f"n={match['name']},r={match['nonce']}{extensions},{challenge}"
        return challenge.encode()

    def _verify(self, text: str, credential: ScramCredential) -> bytes:
        """Return the server's signature if the client's proof is correct.

        Raises CredentialsWrong, or TokenBroken for a malformed proof.
        """
        match = _CLIENT_FINAL.fullmatch(text)
        if match is None:
            raise CredentialsWrong("Invalid SCRAM client final message format")
        # librdkafka before 2.6.1 repeats its own nonce before both.
        if not match["nonce"].endswith(self._both_nonces):
            raise CredentialsWrong("Invalid client nonce in the final client message.")
        auth_message = (
            f"{self._auth_message_start},c={match['channel']},r={match['nonce']}".encode()
        )
        try:
            proof = b64decode(match["proof"], validate=True)
        except Base64Error as error:
            raise TokenBroken("a proof that is no base64") from error
        signature = hmac.digest(credential.stored_key, auth_message, self._hash_name)
        if len(proof) != len(signature):
            raise TokenBroken("a proof of another length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        computed = hashlib.new(self._hash_name, client_key).digest()
        if not hmac.compare_digest(computed, credential.stored_key):
            raise CredentialsWrong("Invalid client credentials")
        self.user = self._name
        answer = hmac.digest(credential.server_key, auth_message, self._hash_name)
        return b"v=" + b64encode(answer)


def nonce_of(random_bytes: bytes) -> str:
    """Return a nonce in Kafka's format from random bytes: 130 bits in letters and digits."""
    number = int.from_bytes(random_bytes) & ((1 << _NONCE_BITS) - 1)
    digits = []
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"


def _decode_user(sasl_name: str) -> str:
    """Return the user whose name a SCRAM message has, with `,` and `=` escaped."""
    return sasl_name.replace("=2C", ",").replace("=3D", "=")
