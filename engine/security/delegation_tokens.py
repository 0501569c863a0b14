"""A broker's delegation tokens, and the permissions of principals on them; pure.

```
HMAC = HMAC-SHA-512(delegation.token.secret.key, token id)
```

The HMAC is the secret of a token: in base64 it is the password with which its holder authenticates
by SCRAM, with the token id as the user name, and then acts as the owner. An expired token is still
accepted, with a session lifetime of 0, until the controller removes it.

| principal | may |
|---|---|
| owner, renewers | renew it and expire it |
| owner, requester, renewers | see it |
| with DESCRIBE on the token, or DESCRIBE_TOKENS on its owner | see it |

Source: KIP-48, KIP-373; DelegationTokenManager, DelegationTokenCache, TokenInformation of 3.9.1.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from engine.security.scram import (
    ITERATIONS_MIN,
    SaltedPassword,
    ScramCredential,
    ScramMechanism,
    salted_credential,
)

_HMAC_HASH: Final = "sha512"


class DelegationToken(NamedTuple):
    """A token; principals have the form `User:alice`, times are in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    #: The latest possible expiry time.
    max_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Return True if the token has expired at the wall time `now_ms`."""
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_be_changed_by(self, principal: str) -> bool:
        """Return True if a principal may renew and expire the token: the owner or a renewer."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return True if a principal is the token's owner, requester or a renewer."""
        return principal == self.requester or self.may_be_changed_by(principal)


def token_hmac(secret: str, token_id: str) -> bytes:
    """Return the HMAC of a token id with the brokers' secret: clients use it as the password."""
    return hmac.digest(secret.encode(), token_id.encode(), _HMAC_HASH)


def is_shown(
    token: DelegationToken,
    principal: str,
    owners: Collection[str] | None,
    may_describe: Callable[[DelegationToken], bool],
) -> bool:
    """Return True if a principal sees a token when it requests the tokens of `owners`.

    `owners` None means all owners.
    """
    if owners is not None and not any(token.concerns(owner) for owner in owners):
        return False
    return token.concerns(principal) or may_describe(token)


class TokenCache:
    """The delegation tokens of a cluster in one broker, and their credentials."""

    def __init__(self, secret: str, salt: Callable[[], bytes]) -> None:
        """Create the cache without tokens; `salt` returns random bytes."""
        self._secret = secret
        self._salt = salt
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def __repr__(self) -> str:
        return f"TokenCache({len(self._tokens)} tokens)"

    @property
    def tokens(self) -> list[DelegationToken]:
        """Return all tokens, the oldest first.

        Differs: in Kafka they are in the order of the hashes of their random ids.
        """
        return sorted(self._tokens.values(), key=lambda token: (token.issued_ms, token.token_id))

    def of(self, token_id: str) -> DelegationToken | None:
        """Return the token with an id, None if there is none."""
        return self._tokens.get(token_id)

    def by_hmac(self, given: bytes) -> DelegationToken | None:
        """Return the token with an HMAC, None if there is none; compares in constant time."""
        found = None
        for token in self._tokens.values():
            if hmac.compare_digest(self.hmac_of(token.token_id), given):
                found = token
        return found

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token id, whether the token exists or not."""
        return token_hmac(self._secret, token_id)

    def put(self, token: DelegationToken) -> None:
        """Add a token, or replace the one with its id."""
        self._tokens[token.token_id] = token

    def remove(self, token_id: str) -> None:
        """Remove a token and its credentials."""
        self._tokens.pop(token_id, None)
        for mechanism in ScramMechanism:
            self._credentials.pop((token_id, mechanism), None)

    def keep(self, token_ids: Iterable[str]) -> None:
        """Remove all tokens whose ids are not in `token_ids`, because they were deleted."""
        for token_id in self._tokens.keys() - set(token_ids):
            self.remove(token_id)

    def credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        """Return the SCRAM credential with which a client logs in with a token that exists.

        Differs: computed on first use; Kafka computes those of all mechanisms at once.
        """
        key = token_id, mechanism
        credential = self._credentials.get(key)
        if credential is None:
            password = b64encode(self.hmac_of(token_id))
            salt = self._salt()
            raw = hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, ITERATIONS_MIN)
            salted = SaltedPassword(salt, raw, ITERATIONS_MIN)
            credential = self._credentials[key] = salted_credential(mechanism, salted)
        return credential
