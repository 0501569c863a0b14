"""The server's side of OAUTHBEARER.

```
client  n,,^Aauth=Bearer <token>^A^A          server  empty: the client is authenticated
                                              or      {"status":"invalid_token"}
client  ^A                                    server  failure, with that text
```

`^A` is the byte 1. Extensions from the client are accepted and ignored.

Source: RFC 7628; OAuthBearerSaslServer, OAuthBearerClientInitialResponse of 3.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engine.security.oauth_tokens import AccessToken, TokenRefused
from engine.security.sasl import CredentialsWrong, SaslFailed, TokenBroken

_SEPARATOR: Final = "\x01"
#: Possessive quantifiers, as in `sasl.py`.
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_PAIRS: Final = r"(?:[A-Za-z]++=[\x21-\x7e \t\r\n]++\x01)*+"
_FIRST: Final = re.compile(rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.A)
_WRONG_FIRST: Final = "Invalid OAUTHBEARER client first message"


class OAuthBearerServer:
    """One authentication by OAUTHBEARER."""

    def __init__(self, token_of: Callable[[str], AccessToken], wall_ms: Callable[[], int]) -> None:
        """Create the server of one OAUTHBEARER login.

        `token_of` returns a verified token, or raises TokenRefused. `wall_ms` returns the time from
        which the token's remaining lifetime is computed.
        """
        self.user: str | None = None
        self.is_token = False
        #: The remaining lifetime of the token.
        self.lifetime_ms: int | None = None
        self._token_of = token_of
        self._wall_ms = wall_ms
        #: The reason why the token was rejected; None without one. As the protocol requires, the
        #: error is raised only at the client's next message.
        self._failure: str | None = None

    def response_to(self, token: bytes) -> bytes:
        """Return an empty response for a valid token, else JSON with the reason of the rejection.

        After a rejection the client's next message ends the login with SaslFailed.
        """
        if self._failure is not None and token == _SEPARATOR.encode():
            raise SaslFailed(self._failure)
        self._failure = None
        match = _FIRST.fullmatch(token.decode("utf-8", "replace"))
        if match is None:
            raise CredentialsWrong(_WRONG_FIRST)
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
        if "auth" not in pairs:
            raise CredentialsWrong(f"{_WRONG_FIRST}: 'auth' not specified")
        auth = _AUTH.fullmatch(pairs["auth"])
        if auth is None:
            raise CredentialsWrong(f"{_WRONG_FIRST}: invalid 'auth' format")
        if auth["scheme"].lower() != "bearer":
            # Kafka fails while it creates the error message.
            raise TokenBroken("Invalid scheme in OAUTHBEARER client first message")
        try:
            access = self._token_of(auth["token"])
        except TokenRefused as refused:
            self._failure = _failure_json(refused)
            return self._failure.encode()
        wanted = match["authorization_id"]
        if wanted is not None and wanted != access.principal:
            raise SaslFailed(
                f"Authentication failed: Client requested an authorization id ({wanted}) that is "
                f"different from the token's principal name ({access.principal})"
            )
        self.lifetime_ms = max(access.expires_ms - self._wall_ms(), 0)
        self.user = access.principal
        return b""


def _failure_json(refused: TokenRefused) -> str:
    """Return the reason of a rejection as the JSON that Kafka writes, with its blanks."""
    scope = "" if refused.scope is None else f', "scope":"{refused.scope}"'
    return f'{{"status":"{refused.status}"{scope}}}'
