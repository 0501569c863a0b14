"""Authorization decisions with their reason: which ACL decides about a principal's operation.

```
ACLs that match the resource ──none──────────▶ allow.everyone.if.no.acl.found
        │ some
        ├─ one denies the operation, or ALL ─▶ denied, by that ACL
        ├─ one allows it, ALL, or implies it ▶ allowed, by that ACL
        └─ neither ──────────────────────────▶ denied
```

`AclCache` makes the same decisions for a broker, faster and without the reason; a property test
compares both. Here a resource may also be a prefix, for all names that begin with it. Then an ACL
that denies some of them denies the operation, and an ACL allows it only if it covers all of them.

Source: AclAuthorizer.authorizeAction of 3.9.1; KIP-11, KIP-290.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from engine.security.acl_cache import Requester, entry_applies, operations_that_allow
from engine.security.acls import (
    WILDCARD_HOST,
    WILDCARD_NAME,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    PatternType,
)


class AclResult(Enum):
    """The result of a decision; UNKNOWN if it depends on an unknown setting."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class AclReason(Enum):
    """The reason of a decision."""

    SUPER_USER = "super-user"
    DENYING_RULE = "denying-rule"
    ALLOWING_RULE = "allowing-rule"
    #: The resource has ACLs, and none of them allows the operation.
    NO_RULE_ALLOWS = "no-rule-allows"
    #: The resource has no ACLs: `allow.everyone.if.no.acl.found` decides.
    NO_RULE = "no-rule"


class AclDecision(NamedTuple):
    """A decision; `rule` is the ACL that decides, None if no single one does."""

    result: AclResult
    reason: AclReason
    rule: AclBinding | None = None

    @property
    def is_allowed(self) -> bool:
        """True if the operation is certainly allowed."""
        return self.result is AclResult.ALLOWED


class AuthorizerSettings(NamedTuple):
    """An authorizer's settings; `allows_without_rules` is None if unknown."""

    super_users: frozenset[str] = frozenset()
    allows_without_rules: bool | None = False


def decide(
    rules: Sequence[AclBinding],
    requester: Requester,
    operation: AclOperation,
    resource: AclPattern,
    settings: AuthorizerSettings,
) -> AclDecision:
    """Return whether ACLs allow an operation on a resource, and the reason.

    A prefixed `resource` means all names with the prefix: the operation has to be allowed on
    each of them.
    """
    if requester.principal in settings.super_users:
        return AclDecision(AclResult.ALLOWED, AclReason.SUPER_USER)
    about = [rule for rule in rules if _concerns(rule.pattern, resource)]
    if not about:
        return AclDecision(_without_rules(settings), AclReason.NO_RULE)
    denying = _first_applying(about, requester, (operation,), AclPermission.DENY)
    if denying is not None:
        return AclDecision(AclResult.DENIED, AclReason.DENYING_RULE, denying)
    covering = [rule for rule in about if _covers(rule.pattern, resource)]
    allowing = _first_applying(
        covering, requester, operations_that_allow(operation), AclPermission.ALLOW
    )
    if allowing is not None:
        return AclDecision(AclResult.ALLOWED, AclReason.ALLOWING_RULE, allowing)
    return AclDecision(AclResult.DENIED, AclReason.NO_RULE_ALLOWS)


def hosts_named(
    rules: Iterable[AclBinding], principals: Iterable[str], resource: AclPattern
) -> list[str]:
    """Return the hosts in the ACLs of a resource for these principals, sorted, without `*`."""
    wanted = frozenset(principals)
    hosts = {
        rule.entry.host
        for rule in rules
        if rule.entry.principal in wanted and _concerns(rule.pattern, resource)
    }
    return sorted(hosts - {WILDCARD_HOST})


def _without_rules(settings: AuthorizerSettings) -> AclResult:
    """Return the decision about a resource without ACLs; UNKNOWN if the setting is unknown."""
    if settings.allows_without_rules is None:
        return AclResult.UNKNOWN
    return AclResult.ALLOWED if settings.allows_without_rules else AclResult.DENIED


def _concerns(pattern: AclPattern, resource: AclPattern) -> bool:
    """Return True if a pattern matches the resource, or at least one name of its prefix."""
    if pattern.kind is not resource.kind:
        return False
    if _covers(pattern, resource):
        return True
    return resource.pattern_type is PatternType.PREFIXED and pattern.name.startswith(resource.name)


def _covers(pattern: AclPattern, resource: AclPattern) -> bool:
    """Return True if a pattern matches the resource, or each name of its prefix."""
    if pattern.pattern_type is PatternType.PREFIXED:
        return resource.name.startswith(pattern.name)
    if pattern.name == WILDCARD_NAME:
        return True
    return resource.pattern_type is not PatternType.PREFIXED and pattern.name == resource.name


def _first_applying(
    rules: Iterable[AclBinding],
    requester: Requester,
    operations: Sequence[AclOperation],
    permission: AclPermission,
) -> AclBinding | None:
    """Return the first ACL with the permission that applies, None without one.

    All ACLs are searched for an earlier operation before the next one.
    """
    rules = list(rules)
    for operation in operations:
        for rule in rules:
            if entry_applies(rule.entry, requester, operation, permission):
                return rule
    return None
