"""The delegation tokens of a broker: their change nodes, and the removal of expired tokens.

| setting | meaning |
|---|---|
| `delegation.token.secret.key`, or its older name `delegation.token.master.key` | the key of all HMACs; without it there are no tokens. All brokers have the same |
| `delegation.token.expiry.time.ms` | how long a token is valid without a renewal |
| `delegation.token.max.lifetime.ms` | how long it can be renewed |
| `delegation.token.expiry.check.interval.ms` | how often the controller removes expired tokens |

Source: DelegationTokenManagerZk, KafkaController.onControllerFailover of 3.9.1.
"""  # noqa: E501 - a table

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.admin.token_admin import TokenAdmin, TokenLifetimes
from engine.broker.change_watch import ChangeReader, ChangeWatch
from engine.broker.tasks import LoopTasks
from engine.config.broker_config import BrokerConfig
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Entropy, Timers
from engine.host.promise import Promise
from engine.security.credentials import SALT_BYTES
from engine.security.delegation_tokens import TokenCache
from engine.security.principals import principal_parts
from engine.security.sasl import TokenLogin
from engine.security.scram import ScramMechanism
from engine.znode.client import ZnodeClient
from engine.znode.paths import DELEGATION_TOKEN_CHANGES
from engine.znode.token_values import decode_token_change

_log = logging.getLogger("kafka.server.DelegationTokenManagerZk")


def secret_key(config: BrokerConfig) -> str | None:
    """Return the secret by which tokens' HMACs are computed, None if tokens are disabled."""
    key = config.delegation_token_secret_key
    return (config.delegation_token_master_key if key is None else key) or None


class BrokerTokens:
    """The delegation tokens, reloaded when their znodes change."""

    def __init__(
        self,
        config: BrokerConfig,
        secret: str,
        znodes: ZnodeClient,
        *,
        clock: Clock,
        timers: Timers,
        entropy: Entropy,
    ) -> None:
        """Create the broker's delegation tokens; none is loaded before `start`.

        `secret` is `delegation.token.secret.key`.
        """
        self._clock = clock
        self._is_stopped = False
        self._check_interval_ms = config.delegation_token_expiry_check_interval_ms
        #: Creates, renews and removes tokens in the metadata store.
        self.admin = TokenAdmin(
            znodes,
            TokenCache(secret, lambda: entropy.random_bytes(SALT_BYTES)),
            TokenLifetimes(
                config.delegation_token_expiry_time_ms, config.delegation_token_max_lifetime_ms
            ),
            clock=clock,
            entropy=entropy,
        )

        async def apply(data: bytes | None, path: str) -> None:
            """Load the token that a change node names."""
            await self.admin.refresh(decode_token_change(data, path))

        reader = ChangeReader(DELEGATION_TOKEN_CHANGES, "delegation tokens", self.admin.load, apply)
        #: Applies changes by other brokers to the cache of `admin`.
        self._watch = ChangeWatch(znodes, reader, clock=clock, timers=timers)

    async def start(self) -> None:
        """Read all tokens and watch for changes; to be called again in each new session."""
        await self.admin.create_paths()
        await self._watch.start()

    def stop(self) -> None:
        """Stop the watch, so that later changes of tokens are ignored."""
        self._is_stopped = True
        self._watch.stop()

    def login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return owner, credential and remaining lifetime of a token; None for an unknown token.

        The SCRAM authentication of a client with a token needs them.
        """
        cache = self.admin.cache
        token = cache.of(token_id)
        if token is None:
            return None
        _, owner = principal_parts(token.owner)
        lifetime_ms = max(token.expires_ms - self._clock.wall_ms(), 0)
        return TokenLogin(owner, cache.credential(token_id, mechanism), lifetime_ms)

    def remove_expired(self) -> None:
        """Start to remove expired tokens, without waiting for the result."""
        if self._is_stopped:
            return
        work = drive(self.admin.remove_expired())
        work.watch(lambda: _log_failure(work))

    def remove_expired_on(self, tasks: LoopTasks, is_controller: Callable[[], bool]) -> None:
        """Start a periodic task that removes expired tokens while this broker is the controller."""

        def check() -> None:
            """Remove expired tokens if this broker is the controller now."""
            if is_controller():
                self.remove_expired()

        interval_ms = self._check_interval_ms
        tasks.every("delete-expired-tokens", interval_ms, check, first_after_ms=interval_ms)


def _log_failure(work: Promise[None]) -> None:
    """Log the error if expired tokens could not be removed; the next check tries again."""
    try:
        work.result()
    except EngineError as error:
        _log.error("Expired delegation tokens could not be removed: %s", error)
