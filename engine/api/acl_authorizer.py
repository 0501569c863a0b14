"""The authorizer that goes by access rules: Kafka's AclAuthorizer.

Super users, and brokers of this process, may do everything. All others are asked about each
resource, and take no fast paths, but for one case: while there are no rules at all and
`allow.everyone.if.no.acl.found` is set there is nothing to ask.

Source: kafka.security.authorizer.AclAuthorizer of 3.9.1.
Differs: denials are logged at DEBUG; Kafka logs those of what was asked for by name at INFO.
"""

from __future__ import annotations

import logging

from engine.api.admission import AclOperation, AclResource, Session
from engine.security.acl_cache import AclCache, Requester

_log = logging.getLogger("kafka.authorizer.logger")


class AclAuthorizer:
    """Decides by a cache that others keep."""

    def __init__(
        self, cache: AclCache, super_users: frozenset[str], *, allows_without_rules: bool
    ) -> None:
        self._cache = cache
        self._super_users = super_users
        self._allows_without_rules = allows_without_rules

    def may(self, session: Session, operation: AclOperation, kind: AclResource, name: str) -> bool:
        """Return whether a client may do something to a resource."""
        if self._is_free(session):
            return True
        requester = Requester(session.principal, session.host)
        may = self._cache.allows(
            requester, operation, kind, name, if_none=self._allows_without_rules
        )
        _log.debug(
            "Principal = %s is %s Operation = %s from host = %s on resource = %s:LITERAL:%s",
            session.principal,
            "Allowed" if may else "Denied",
            operation.name,
            session.host,
            kind.name,
            name,
        )
        return may

    def may_to_some(self, session: Session, operation: AclOperation, kind: AclResource) -> bool:
        """Return whether there may be a resource of a kind that a client may do something to."""
        requester = Requester(session.principal, session.host)
        return self._is_free(session) or self._cache.allows_some(
            requester, operation, kind, if_none=self._allows_without_rules
        )

    def may_everything(self, session: Session) -> bool:
        """Return whether nothing can be denied to a client, as the rules are now."""
        return self._is_free(session) or (self._allows_without_rules and self._cache.is_empty)

    def _is_free(self, session: Session) -> bool:
        return session.is_own_broker or session.principal in self._super_users
