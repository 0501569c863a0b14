"""Decide by the ACLs whether a client may perform an operation, and log each decision.

Brokers of the same process and super users may do everything. For all other clients each resource
is checked, with two exceptions: while there are no ACLs at all and
`allow.everyone.if.no.acl.found` is set nothing has to be checked, and an operation granted to a
session stays granted until an ACL changes (`Session.is_granted`).

| `kafka.authorizer.logger` | level |
|---|---|
| a denial of a requested operation | INFO |
| a grant, with the ACL that decides or that there is none | DEBUG |
| filtering: lists without the denied resources, authorized operations | TRACE |

Source: kafka.security.authorizer.AclAuthorizer of 3.9.1, and lines that a real broker wrote.
Differs: nothing is logged for clients that may do everything: no ACL is checked for them.
"""

from __future__ import annotations

import logging
from typing import Final

from engine.api.admission import NAMED, AclOperation, AclResource, Audit, Session
from engine.errors import WireError
from engine.security.acl_cache import AclCache, Requester
from engine.security.acl_decision import AclDecision, AclReason, AuthorizerSettings, decide
from engine.security.acls import AclBinding, AclPattern, PatternType, pascal_name
from engine.wire.headers import api

_log = logging.getLogger("kafka.authorizer.logger")
_TRACE: Final = 5
#: The name in log lines about any resource of a kind.
_NO_NAME: Final = "NONE"
_UPDATE_METADATA: Final = api("UpdateMetadata").key


class AclAuthorizer:
    """Authorizes requests by the cached ACLs; the owner of the cache updates it."""

    def __init__(
        self, cache: AclCache, super_users: frozenset[str], *, allows_without_rules: bool
    ) -> None:
        """Create an authorizer that decides by the ACLs in `cache`; a super user may do everything.

        `allows_without_rules` is `allow.everyone.if.no.acl.found`.
        """
        self._cache = cache
        self._super_users = super_users
        self._allows_without_rules = allows_without_rules
        #: Principal of the last controller whose requests this broker has refused, None without
        #: one: the process reports it.
        self.refused_controller: str | None = None

    @property
    def version(self) -> int:
        """Return a number that grows with each change of the ACLs.

        Cached grants of another are invalid.
        """
        return self._cache.version

    def logs_grants(self) -> bool:
        """True if grants are logged (at DEBUG); a grant from a cache would not be logged."""
        return _log.isEnabledFor(logging.DEBUG)

    def may(
        self,
        session: Session,
        operation: AclOperation,
        kind: AclResource,
        name: str,
        audit: Audit = NAMED,
    ) -> bool:
        """Return True if a client may perform an operation on a resource; log the decision.

        `audit` decides at which level. The principal of a denied controller (UpdateMetadata) is
        stored in `refused_controller`.
        """
        if self._is_free(session):
            return True
        requester = Requester(session.principal, session.host)
        may = self._cache.allows(
            requester, operation, kind, name, if_none=self._allows_without_rules
        )
        if _log.isEnabledFor(logging.DEBUG):
            self._log_reason(requester, operation, AclPattern(kind, name, PatternType.LITERAL))
        _log_result(session, operation, AclPattern(kind, name, PatternType.LITERAL), audit, may=may)
        if not may and session.api_key == _UPDATE_METADATA:
            self.refused_controller = session.principal
        return may

    def may_to_some(self, session: Session, operation: AclOperation, kind: AclResource) -> bool:
        """Return True if a client may perform an operation on at least one resource of a kind.

        For requests that name no resource, like InitProducerId of an idempotent producer.
        """
        if self._is_free(session):
            return True
        requester = Requester(session.principal, session.host)
        may = self._cache.allows_some(
            requester, operation, kind, if_none=self._allows_without_rules
        )
        pattern = AclPattern(kind, _NO_NAME, PatternType.UNKNOWN)
        _log_result(session, operation, pattern, Audit(0), may=may)
        return may

    def may_everything(self, session: Session) -> bool:
        """True if nothing can be denied to a client by the current ACLs."""
        return self._is_free(session) or (self._allows_without_rules and self._cache.is_empty)

    def _is_free(self, session: Session) -> bool:
        """True if no ACL applies to a client: it is a broker of this process, or a super user."""
        return session.is_own_broker or session.principal in self._super_users

    def _log_reason(
        self, requester: Requester, operation: AclOperation, resource: AclPattern
    ) -> None:
        """Write the reason of the decision to the debug log, if Kafka's authorizer logs it."""
        rules = [
            AclBinding(pattern, entry)
            for pattern in self._cache.patterns()
            if pattern.kind is resource.kind
            for entry in self._cache.entries(pattern)
        ]
        settings = AuthorizerSettings(allows_without_rules=self._allows_without_rules)
        decision = decide(rules, requester, operation, resource, settings)
        text = _reason_text(decision, requester, operation, resource)
        if text is not None:
            _log.debug("%s", text)


def _reason_text(
    decision: AclDecision, requester: Requester, operation: AclOperation, resource: AclPattern
) -> str | None:
    """Return the log text about a decision, in the words of Kafka's authorizer.

    None if the resource has ACLs but no ACL matches the request: Kafka then logs nothing.
    """
    shown = (
        f"ResourcePattern(resourceType={resource.kind.name}, name={resource.name}, "
        "patternType=LITERAL)"
    )
    if decision.reason is AclReason.NO_RULE:
        is_allowed = "true" if decision.is_allowed else "false"
        return f"No acl found for resource {shown}, authorized = {is_allowed}"
    if decision.rule is None:
        return None
    entry = decision.rule.entry
    # The rule's operation, which may imply the requested one.
    decisive = operation if entry.operation is AclOperation.ALL else entry.operation
    return (
        f"operation = {decisive.name} on resource = {shown} from host = {requester.host} "
        f"is {entry.permission.name} based on acl = {entry.principal} has "
        f"{entry.permission.name} permission for operations: {entry.operation.name} "
        f"from hosts: {entry.host}"
    )


def _log_result(
    session: Session, operation: AclOperation, pattern: AclPattern, audit: Audit, *, may: bool
) -> None:
    """Log the client, the operation and the decision, as Kafka's authorizer does in its audit log.

    The level follows the decision, and `audit`, which may suppress it.
    """
    if may:
        level = logging.DEBUG if audit.logs_grant else _TRACE
    else:
        level = logging.INFO if audit.logs_denial else _TRACE
    if not _log.isEnabledFor(level):
        return
    _log.log(
        level,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s:%s:%s "
        "for request = %s with resourceRefCount = %d",
        session.principal,
        "Allowed" if may else "Denied",
        pascal_name(operation),
        session.host,
        pascal_name(pattern.kind),
        pattern.pattern_type.name,
        pattern.name,
        _request_name(session.api_key),
        audit.reference_count,
    )


def _request_name(key: int) -> str:
    """Return the API's name for the audit log, the number itself for an unknown API key."""
    try:
        return api(key).name
    except WireError:
        return str(key)
