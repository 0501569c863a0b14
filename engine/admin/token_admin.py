"""Delegation tokens in znodes: created, renewed, expired, and read into a broker's cache.

```
multi { set, create or delete /delegation_token/tokens/<id>
        · create /delegation_token/token_changes/token_change_<S> } ── every broker reads it again
```

The broker that changes a token applies the change at once. Any broker may change tokens, but only
the controller removes expired ones (`remove_expired`).

| request | error |
|---|---|
| renew or expire, with an unknown HMAC | DELEGATION_TOKEN_NOT_FOUND |
| renew or expire, by another principal | DELEGATION_TOKEN_OWNER_MISMATCH |
| renew or expire an expired token, unless at once | DELEGATION_TOKEN_EXPIRED |

Source: DelegationTokenManagerZk of 3.9.1, and a real broker's responses.
Differs: Kafka writes the note in a separate request; if a broker crashes before that, other brokers
keep the old token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from engine.controller.topic_ids import random_topic_id
from engine.errors import api_error
from engine.host.ports import Clock, Entropy
from engine.ids import uuid_text
from engine.kafka_errors import (
    DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
)
from engine.security.delegation_tokens import DelegationToken, TokenCache, is_shown
from engine.znode.client import ZnodeClient
from engine.znode.errors import NodeExists, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import Create, Delete, SetData
from engine.znode.paths import (
    DELEGATION_TOKEN_CHANGE_PREFIX,
    DELEGATION_TOKEN_CHANGES,
    DELEGATION_TOKENS,
    delegation_token_path,
)
from engine.znode.token_values import TokenNode, decode_token, encode_token

_log = logging.getLogger("kafka.server.DelegationTokenManagerZk")


class TokenLifetimes(NamedTuple):
    """The default and the maximum lifetime of delegation tokens."""

    renewal_ms: int
    max_ms: int


class TokenAdmin:
    """Keeps a broker's token cache equal to the znodes, and changes both."""

    def __init__(
        self,
        znodes: ZnodeClient,
        cache: TokenCache,
        lifetimes: TokenLifetimes,
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """Create the reader and writer of delegation tokens in ZooKeeper.

        `cache` is the broker's cache, by which clients are authenticated.
        """
        self.cache = cache
        self._znodes = znodes
        self._lifetimes = lifetimes
        self._clock = clock
        self._entropy = entropy

    # Following the znodes

    async def create_paths(self) -> None:
        """Create the persistent parent nodes of tokens and change notes, where missing."""
        parent = DELEGATION_TOKENS.rpartition("/")[0]
        for path in (parent, DELEGATION_TOKENS, DELEGATION_TOKEN_CHANGES):
            try:
                await self._znodes.create(path)
            except NodeExists:
                continue

    async def load(self) -> None:
        """Read all tokens into the cache; tokens without a node are removed."""
        token_ids = await self._znodes.children(DELEGATION_TOKENS)
        self.cache.keep(token_ids)
        for token_id in token_ids:
            await self.refresh(token_id)

    async def refresh(self, token_id: str) -> None:
        """Read one token into the cache; remove it if its node is missing or invalid."""
        path = delegation_token_path(token_id)
        try:
            data, _ = await self._znodes.get(path)
            token = decode_token(data, path)
        except NoNode:
            self.cache.remove(token_id)
        except InvalidZnodeValue as error:
            _log.error("A delegation token is left out: %s", error)
            self.cache.remove(token_id)
        else:
            self.cache.put(DelegationToken(*token))

    # Requests

    async def create(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int
    ) -> DelegationToken:
        """Create and store a token, and return it.

        A `max_lifetime_ms` of 0 or less selects the broker's maximum.
        """
        # An id like those of topics, which never begins with a dash.
        token_id = uuid_text(random_topic_id(self._entropy))
        now_ms = self._clock.wall_ms()
        lifetime_ms = self._lifetimes.max_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        expires_ms = now_ms + min(lifetime_ms, self._lifetimes.renewal_ms)
        token = DelegationToken(
            token_id, owner, requester, tuple(renewers), now_ms, expires_ms, now_ms + lifetime_ms
        )
        await self._write(token)
        _log.info("Created a delegation token: %s for owner: %s", token_id, owner)
        return token

    async def renew(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Set a token's expiry time to `period_ms` from now and return it in wall-clock ms.

        Below 0, the period is the broker's default. Raises ApiError and the errors of the store.
        """
        token, now_ms = self._require_changeable(principal, hmac), self._clock.wall_ms()
        if token.is_expired(now_ms):
            raise api_error(DELEGATION_TOKEN_EXPIRED)
        renewal_ms = self._lifetimes.renewal_ms if period_ms < 0 else period_ms
        return await self._expire_at(token, now_ms + renewal_ms)

    async def expire(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Set a token's expiry time to `period_ms` from now and return it in wall-clock ms.

        Below 0, the token is deleted at once. Raises ApiError and the errors of the store.
        """
        token, now_ms = self._require_changeable(principal, hmac), self._clock.wall_ms()
        if period_ms < 0:
            await self._remove(token)
            return now_ms
        if token.is_expired(now_ms):
            raise api_error(DELEGATION_TOKEN_EXPIRED)
        return await self._expire_at(token, now_ms + period_ms)

    def describe_tokens(
        self,
        principal: str,
        owners: Collection[str] | None,
        may_describe: Callable[[DelegationToken], bool],
    ) -> list[DelegationToken]:
        """Return the tokens that a principal may see, of the given owners; of all owners for None.

        `may_describe` returns True for a token that an ACL allows the principal to see.
        """
        return [
            token for token in self.cache.tokens if is_shown(token, principal, owners, may_describe)
        ]

    async def remove_expired(self) -> None:
        """Delete expired tokens from ZooKeeper and the cache; raises the errors of the store."""
        now_ms = self._clock.wall_ms()
        for token in self.cache.tokens:
            if token.is_expired(now_ms):
                await self._remove(token)

    def _require_changeable(self, principal: str, hmac: bytes) -> DelegationToken:
        """Return the token of an HMAC, which the principal may change.

        Raises ApiError if the HMAC is unknown or the principal is not its owner or renewer.
        """
        token = self.cache.by_hmac(hmac)
        if token is None:
            raise api_error(DELEGATION_TOKEN_NOT_FOUND)
        if not token.may_be_changed_by(principal):
            raise api_error(DELEGATION_TOKEN_OWNER_MISMATCH)
        return token

    # Writing

    async def _expire_at(self, token: DelegationToken, at_ms: int) -> int:
        """Store a token's new expiry time, at most its maximum.

        Returns the time in wall-clock ms.
        """
        changed = token._replace(expires_ms=min(at_ms, token.max_ms))
        await self._write(changed)
        _log.info("Token %s of %s expires at %d", token.token_id, token.owner, changed.expires_ms)
        return changed.expires_ms

    async def _write(self, token: DelegationToken) -> None:
        """Create or replace a token's znode with a change note, then put it into the cache."""
        path, data = delegation_token_path(token.token_id), encode_token(TokenNode(*token))
        note = _change_note(token.token_id)
        try:
            await self._znodes.multi((SetData(path, data), note))
        except NoNode:
            await self._znodes.multi((Create(path, data), note))
        self.cache.put(token)

    async def _remove(self, token: DelegationToken) -> None:
        """Delete a token from ZooKeeper and the cache.

        The change note is written even if the znode is missing.
        """
        note = _change_note(token.token_id)
        try:
            await self._znodes.multi((Delete(delegation_token_path(token.token_id)), note))
        except NoNode:
            _log.info("Token %s was removed already", token.token_id)
            await self._znodes.multi((note,))
        self.cache.remove(token.token_id)
        _log.info(
            "Delegation token expired for token: %s for owner: %s", token.token_id, token.owner
        )


def _change_note(token_id: str) -> Create:
    """Return the operation that creates a token's change note, on which brokers read it again."""
    return Create(DELEGATION_TOKEN_CHANGE_PREFIX, token_id.encode(), sequential=True)
