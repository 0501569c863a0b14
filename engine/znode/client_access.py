"""Identities that a client of the embedded store has proved on its connection.

```
AUTH  digest, user:password      gets digest:<user>:<hash>; any password is accepted
SASL  empty ──> challenge        SASL  response ──> rspauth; gets sasl:<user>
```

Source: ZooKeeperServer.processPacket and processSasl of ZooKeeper 3.8.
Differs: without SASL users the server ignores `zookeeper.sessionRequireClientSASLAuth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from engine.znode.permissions import DIGEST, IP, SASL, Identities, acl_to_store, digest_identity
from engine.znode.zookeeper_wire import RequestRefused

if TYPE_CHECKING:
    from engine.host.ports import Entropy
    from engine.znode.model import NodeAclEntry

_AUTH_FAILED: Final = -115
_REALM: Final = "zk-sasl-md5"
_URI: Final = "zookeeper/zk-sasl-md5"
_NONCE_BYTES: Final = 24


class ClientAccess:
    """The identities of one connection."""

    def __init__(self, peer: str, users: Mapping[str, str], entropy: Entropy) -> None:
        """Start with the identity of the client's address; logins add others."""
        host = peer.rpartition(":")[0].strip("[]")
        self.identities: Identities = ((IP, host),)
        self._users = users
        self._entropy = entropy
        #: Challenge of the SASL login; empty before the login begins.
        self._nonce = ""

    def acl_to_store(self, path: str, acl: tuple[NodeAclEntry, ...]) -> tuple[NodeAclEntry, ...]:
        """Return the ACL to store for an ACL that the client has sent; raise InvalidAcl.

        An entry of scheme `auth` becomes one for each identity of the connection.
        """
        return acl_to_store(path, acl, self.identities, has_sasl=bool(self._users))

    def add(self, scheme: str, proof: bytes) -> None:
        """Add the identity that a client's addAuth request proves; raises RequestRefused (-115).

        `proof` is `user:password` for the scheme digest.
        """
        if scheme == DIGEST:
            self._add_identity(digest_identity(proof))
        elif scheme != IP:
            raise RequestRefused(_AUTH_FAILED, f"no scheme {scheme}")

    def answer_to(self, token: bytes) -> bytes | None:
        """Return the response to a client's SASL token: a challenge, then the proof of the server.

        None if the store has no users; raises RequestRefused for a wrong answer.
        """
        # Loaded with the first client that logs in.
        from engine.security.digest_md5 import DigestRefused, challenge_of, check_answer

        if not self._users:
            return None
        if not self._nonce:
            self._nonce = self._entropy.random_bytes(_NONCE_BYTES).hex()
            return challenge_of(_REALM, self._nonce)
        nonce, self._nonce = self._nonce, ""
        try:
            user, answer = check_answer(token, self._users, _REALM, nonce, _URI)
        except DigestRefused as error:
            raise RequestRefused(_AUTH_FAILED, str(error)) from error
        self._add_identity((SASL, user))
        return answer

    def _add_identity(self, identity: tuple[str, str]) -> None:
        """Add an identity to those of the connection, unless it is among them."""
        if identity not in self.identities:
            self.identities = (*self.identities, identity)
