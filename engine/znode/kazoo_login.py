"""Logs a kazoo client in by DIGEST-MD5, after the first frame of each new connection.

```
xid 1  SASL, empty ──────> the server's challenge ──> xid 2  SASL, the response ──> rspauth
```

No request is sent before the login is complete. The session ends with AUTH_FAILED if the server
refuses, has no SASL, or cannot show that it knows the password.

Source: ZooKeeperSaslClient and SaslQuorumAuth of ZooKeeper 3.8; kazoo's `_authenticate_with_sasl`.
Differs: kazoo's own login needs a further package, and asks a server without SASL endlessly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.serialization import SASL

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.protocol.connection import ConnectionHandler

    from engine.host.ports import Entropy
    from engine.znode.login import ZookeeperLogin

#: Service and host that ZooKeeper's clients assume for every server.
URI: Final = "zookeeper/zk-sasl-md5"
_CNONCE_BYTES: Final = 24


class _Token(SASL):  # type: ignore[misc]
    """A SASL token; kazoo's log shows it without its proof."""

    def __repr__(self) -> str:
        return "SASL"


class KazooLogin:
    """The logins of one client of kazoo."""

    def __init__(self, kazoo: KazooClient, login: ZookeeperLogin, entropy: Entropy) -> None:
        """Make a kazoo client log in on every connection; call it before the client is started."""
        #: Kazoo's connection handler, whose login this object replaces.
        self._handler = kazoo._connection
        self._login = login
        self._entropy = entropy
        #: Whether the server refused the login, which ends the session.
        self.is_refused = False
        self._handler.sasl_options = {}
        self._handler._authenticate_with_sasl = self._log_in

    def _log_in(self, _host: str, timeout_s: float) -> None:
        """Log in on a new connection, on kazoo's thread; raises AuthFailedError."""
        try:
            self._authenticate(timeout_s)
        except AuthFailedError:
            self.is_refused = True
            raise

    def _authenticate(self, timeout_s: float) -> None:
        """Exchange the two SASL tokens; raises AuthFailedError if either side refuses."""
        # Loaded here: clients without a login do not need it.
        from engine.security.digest_md5 import DigestLogin, DigestRefused, answer_challenge

        login = DigestLogin(self._login.username, self._login.password, URI)
        challenge = _exchange_token(self._handler, b"", 1, timeout_s)
        try:
            answer = answer_challenge(
                challenge, login, self._entropy.random_bytes(_CNONCE_BYTES).hex()
            )
        except DigestRefused as error:
            raise AuthFailedError(str(error)) from error
        if _exchange_token(self._handler, answer.message, 2, timeout_s) != answer.rspauth:
            raise AuthFailedError("the server does not know the password")


def _exchange_token(handler: ConnectionHandler, token: bytes, xid: int, timeout_s: float) -> bytes:
    """Send a SASL token and return the server's; raises AuthFailedError."""
    handler._submit(_Token(token), timeout_s, xid)
    try:
        header, buffer, offset = handler._read_header(timeout_s)
    except ConnectionDropped as error:
        raise AuthFailedError("the server closed the connection") from error
    if header.xid != xid or header.err:
        raise AuthFailedError(f"the server refuses with {header.err}")
    reply, _ = SASL.deserialize(buffer, offset)
    if reply is None:
        raise AuthFailedError("the server has no SASL")
    return bytes(reply)
