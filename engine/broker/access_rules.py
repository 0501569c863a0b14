"""The ACLs of a broker: its authorizer, and the change nodes about changed ACLs.

| setting | meaning |
|---|---|
| `authorizer.class.name` | empty: every principal may do everything, and ACL APIs are refused |
| `super.users` | principals that may do everything, separated by semicolons |
| `allow.everyone.if.no.acl.found` | whether every principal may use a resource without ACLs |

ACLs of literal and of prefixed patterns are in different trees, each with its change nodes.

Source: AclAuthorizer.configure, ZkAclStore of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine.admin.acl_admin import AclAdmin, pattern_of
from engine.api.acl_authorizer import AclAuthorizer
from engine.broker.change_watch import ChangeReader, ChangeWatch
from engine.config.settings import BrokerSettings
from engine.host.ports import Clock, Timers
from engine.security.acl_cache import AclCache
from engine.security.acls import PatternType
from engine.security.principals import super_users_of
from engine.znode.acl_values import (
    AclChange,
    decode_extended_acl_change,
    decode_literal_acl_change,
)
from engine.znode.client import ZnodeClient
from engine.znode.paths import ACL_CHANGES, EXTENDED_ACL_CHANGES


class AccessRules:
    """The authorizer of a broker, and the watch that reloads changed ACLs."""

    def __init__(
        self, settings: BrokerSettings, znodes: ZnodeClient, *, clock: Clock, timers: Timers
    ) -> None:
        """Create the broker's ACLs: their authorizer, their admin and the watches of their changes.

        `settings` are the authorizer's settings, which `unserved.py` has checked.
        """
        cache = AclCache()
        #: Reads and changes the ACLs in the metadata store, and updates the cache.
        self.admin = AclAdmin(znodes, cache)
        self.authorizer = _authorizer_of(settings, cache)
        #: One watch for literal and one for prefixed patterns: Kafka has two paths for change
        #: nodes.
        self._watches = [
            ChangeWatch(znodes, reader, clock=clock, timers=timers)
            for reader in (
                self._make_reader(ACL_CHANGES, PatternType.LITERAL, decode_literal_acl_change),
                self._make_reader(
                    EXTENDED_ACL_CHANGES, PatternType.PREFIXED, decode_extended_acl_change
                ),
            )
        ]

    def _make_reader(
        self,
        directory: str,
        pattern_type: PatternType,
        decode: Callable[[bytes | None, str], AclChange],
    ) -> ChangeReader:
        """Return the reader of one directory of change nodes, for ACL patterns of one type.

        `decode` returns the changed pattern of a node; the reader then loads that pattern's ACLs
        again.
        """

        async def apply(data: bytes | None, path: str) -> None:
            """Load the ACLs of the pattern that a change node names."""
            await self.admin.refresh(pattern_of(decode(data, path)))

        load = partial(self.admin.load, pattern_type)
        return ChangeReader(directory, "access rules", load, apply)

    async def start(self) -> None:
        """Read all ACLs and watch for changes; to be called again in each new session."""
        await self.admin.create_paths()
        for watch in self._watches:
            await watch.start()

    def stop(self) -> None:
        """Stop the watches, so that all later changes of ACLs are ignored."""
        for watch in self._watches:
            watch.stop()


def _authorizer_of(settings: BrokerSettings, cache: AclCache) -> AclAuthorizer:
    """Return the authorizer with the settings `super.users`, `allow.everyone.if.no.acl.found`."""
    super_users, _ = super_users_of(settings.configured_text("super.users") or "")
    allows = settings.configured_text("allow.everyone.if.no.acl.found") or ""
    is_open = allows.strip().lower() == "true"
    return AclAuthorizer(cache, super_users, allows_without_rules=is_open)
