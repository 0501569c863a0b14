"""Delegation tokens of a broker, and the operations that principals may do on them; pure.

```
HMAC = HMAC-SHA-512(delegation.token.secret.key, token id)
```

The HMAC is the secret of a token: in base64 it is the password with which its holder logs in by
SCRAM, under the token's id, and is the owner then. Only the token itself has its lifetime:
one that has expired stays, and opens sessions of no length, until the controller removes it.

| principal | may |
|---|---|
| owner, renewers | renew it and have it expire |
| owner, requester, renewers | see it |
| with DESCRIBE of the token, or DESCRIBE_TOKENS of its owner | see it |

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
    """A token; principals are texts such as `User:alice`, times are in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    #: Renewals do not reach beyond it.
    max_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Return whether its time is over."""
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def may_be_changed_by(self, principal: str) -> bool:
        """Return whether a principal may renew it and have it expire."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return whether a principal owns it, requested it or may renew it."""
        return principal == self.requester or self.may_be_changed_by(principal)


def token_hmac(secret: str, token_id: str) -> bytes:
    """Return the secret of a token."""
    return hmac.digest(secret.encode(), token_id.encode(), _HMAC_HASH)


def is_shown(
    token: DelegationToken,
    principal: str,
    owners: Collection[str] | None,
    may_describe: Callable[[DelegationToken], bool],
) -> bool:
    """Return whether a principal that requests the tokens of owners sees it; None requests all."""
    if owners is not None and not any(token.concerns(owner) for owner in owners):
        return False
    return token.concerns(principal) or may_describe(token)


class TokenCache:
    """The tokens of a cluster in one broker, and their credentials."""

    def __init__(self, secret: str, salt: Callable[[], bytes]) -> None:
        """`salt` returns random bytes."""
        self._secret = secret
        self._salt = salt
        self._tokens: dict[str, DelegationToken] = {}
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def __repr__(self) -> str:
        return f"TokenCache({len(self._tokens)} tokens)"

    @property
    def tokens(self) -> list[DelegationToken]:
        """Return all tokens, the oldest first.

        Differs: Kafka has no order, but that of hashes of random ids.
        """
        return sorted(self._tokens.values(), key=lambda token: (token.issued_ms, token.token_id))

    def of(self, token_id: str) -> DelegationToken | None:
        """Return a token, None if there is none."""
        return self._tokens.get(token_id)

    def by_hmac(self, given: bytes) -> DelegationToken | None:
        """Return the token with an HMAC, None if there is none; compared in constant time."""
        found = None
        for token in self._tokens.values():
            if hmac.compare_digest(self.hmac_of(token.token_id), given):
                found = token
        return found

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC that a token of an id has."""
        return token_hmac(self._secret, token_id)

    def put(self, token: DelegationToken) -> None:
        """Add or replace a token."""
        self._tokens[token.token_id] = token

    def remove(self, token_id: str) -> None:
        """Forget a token."""
        self._tokens.pop(token_id, None)
        for mechanism in ScramMechanism:
            self._credentials.pop((token_id, mechanism), None)

    def keep(self, token_ids: Iterable[str]) -> None:
        """Forget all others: they are deleted."""
        for token_id in self._tokens.keys() - set(token_ids):
            self.remove(token_id)

    def credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        """Return the SCRAM credential of an existing token.

        Differs: computed when it is first needed; Kafka computes those of all mechanisms at once.
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
