"""The ACLs of a broker, and the authorization decisions from them.

An operation on a resource is decided by the entries of all these patterns:

```
 literal <name>    literal *    every prefixed pattern with which the name begins
```

| entries | decision |
|---|---|
| no entries | `allow.everyone.if.no.acl.found` |
| one denies it | denied |
| one allows it, or allows an operation that implies it | allowed |
| otherwise | denied |

| operation | is implied by |
|---|---|
| DESCRIBE | READ, WRITE, DELETE, ALTER |
| DESCRIBE_CONFIGS | ALTER_CONFIGS |

An entry for ALL applies to every operation. A denial implies nothing: if READ is denied, DESCRIBE
may still be allowed.

Source: AclAuthorizer of 3.9.1; KIP-11, KIP-290, KIP-679.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from engine.security.acls import (
    WILDCARD_HOST,
    WILDCARD_NAME,
    WILDCARD_PRINCIPAL,
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)

_IMPLIED_BY = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class Requester(NamedTuple):
    """A principal, and the host of its requests."""

    principal: str
    host: str


class _NamesKey(NamedTuple):
    """An entry, with the resource type and pattern type of its patterns."""

    entry: AccessEntry
    kind: AclResource
    pattern_type: PatternType


class AclCache:
    """The entries of each resource pattern, without duplicates."""

    def __init__(self) -> None:
        """Create the cache without ACLs."""
        #: Number of changes: grants that sessions cache are valid for one version.
        self.version = 0
        self._entries: dict[AclPattern, tuple[AccessEntry, ...]] = {}
        #: Number of prefixed patterns by resource type; if there are none, no prefixes are looked
        #: up.
        self._prefixed_counts: dict[AclResource, int] = {}
        #: Names of patterns with an entry, by resource type and pattern type.
        self._names: dict[_NamesKey, set[str]] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no ACLs."""
        return not self._entries

    def entries(self, pattern: AclPattern) -> tuple[AccessEntry, ...]:
        """Return the entries of exactly this resource pattern, empty without any."""
        return self._entries.get(pattern, ())

    def patterns(self) -> list[AclPattern]:
        """Return all patterns with entries in Kafka's order.

        They are sorted by kind, then pattern type, then name in descending order.
        """
        falling = sorted(self._entries, key=lambda pattern: pattern.name, reverse=True)
        return sorted(falling, key=lambda pattern: (pattern.kind, pattern.pattern_type))

    def matching(self, acl_filter: AclFilter) -> Iterator[AclBinding]:
        """Yield the ACLs that a filter matches, by pattern."""
        for pattern in self.patterns():
            for entry in self._entries[pattern]:
                if acl_filter.matches(pattern, entry):
                    yield AclBinding(pattern, entry)

    # Changes

    def set(self, pattern: AclPattern, entries: Iterable[AccessEntry]) -> None:
        """Replace the entries of a pattern; a change increments `version`."""
        before, after = self.entries(pattern), tuple(dict.fromkeys(entries))
        if before == after:
            return
        self.version += 1
        if bool(after) != bool(before) and pattern.pattern_type is PatternType.PREFIXED:
            count = self._prefixed_counts.get(pattern.kind, 0)
            self._prefixed_counts[pattern.kind] = count + (1 if after else -1)
        for entry in before:
            self._forget_name(_NamesKey(entry, pattern.kind, pattern.pattern_type), pattern.name)
        for entry in after:
            key = _NamesKey(entry, pattern.kind, pattern.pattern_type)
            self._names.setdefault(key, set()).add(pattern.name)
        if after:
            self._entries[pattern] = after
        else:
            self._entries.pop(pattern, None)

    def keep(self, patterns: Iterable[AclPattern]) -> None:
        """Remove the entries of all patterns not in `patterns`, which were deleted."""
        kept = set(patterns)
        for pattern in [pattern for pattern in self._entries if pattern not in kept]:
            self.set(pattern, ())

    def _forget_name(self, key: _NamesKey, name: str) -> None:
        """Remove a pattern's name from the names of an entry."""
        names = self._names[key]
        names.discard(name)
        if not names:
            del self._names[key]

    # Decisions

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        kind: AclResource,
        name: str,
        *,
        if_none: bool,
    ) -> bool:
        """Return True if the ACLs allow a requester's operation on a resource.

        Without ACLs for the resource the result is `if_none`. A DENY entry has precedence.
        """
        entries = self._entries_about(kind, name)
        if not entries:
            return if_none
        if _has_entry(entries, requester, operation, AclPermission.DENY):
            return False
        return any(
            _has_entry(entries, requester, allowing, AclPermission.ALLOW)
            for allowing in operations_that_allow(operation)
        )

    def _entries_about(self, kind: AclResource, name: str) -> list[AccessEntry]:
        """Return the entries of all patterns that match a resource's name."""
        found = [*self.entries(AclPattern(kind, WILDCARD_NAME, PatternType.LITERAL))]
        found += self.entries(AclPattern(kind, name, PatternType.LITERAL))
        if self._prefixed_counts.get(kind):
            for length in range(1, len(name) + 1):
                found += self.entries(AclPattern(kind, name[:length], PatternType.PREFIXED))
        return found

    def allows_some(
        self, requester: Requester, operation: AclOperation, kind: AclResource, *, if_none: bool
    ) -> bool:
        """Return True if a requester's operation is allowed on at least one resource of a kind.

        No operation implies another here: only entries for this operation and for ALL count.
        """

        def names(permission: AclPermission, pattern_type: PatternType) -> list[set[str]]:
            """Return the names of the patterns with each entry that applies to the requester."""
            found = []
            for entry in _entries_of(requester, operation, permission):
                of_entry = self._names.get(_NamesKey(entry, kind, pattern_type))
                if of_entry is not None:
                    found.append(of_entry)
            return found

        denied = names(AclPermission.DENY, PatternType.LITERAL)
        if any(WILDCARD_NAME in literal for literal in denied):
            return False
        if if_none:
            return True
        denied_prefixes = names(AclPermission.DENY, PatternType.PREFIXED)
        for prefixes in names(AclPermission.ALLOW, PatternType.PREFIXED):
            if any(not _begins_with_one(prefix, denied_prefixes) for prefix in prefixes):
                return True
        return any(
            literal == WILDCARD_NAME
            or not (
                any(literal in names_denied for names_denied in denied)
                or _begins_with_one(literal, denied_prefixes)
            )
            for literals in names(AclPermission.ALLOW, PatternType.LITERAL)
            for literal in literals
        )


def _has_entry(
    entries: Sequence[AccessEntry],
    requester: Requester,
    operation: AclOperation,
    permission: AclPermission,
) -> bool:
    """Return True if one of the entries has `permission` for the operation."""
    return any(entry_applies(entry, requester, operation, permission) for entry in entries)


def entry_applies(
    entry: AccessEntry,
    requester: Requester,
    operation: AclOperation,
    permission: AclPermission,
) -> bool:
    """Return True if an entry allows or denies (`permission`) the requester's operation.

    Operations that imply this one do not count.
    """
    return (
        entry.permission is permission
        and entry.operation in (operation, AclOperation.ALL)
        and entry.principal in (requester.principal, WILDCARD_PRINCIPAL)
        and entry.host in (requester.host, WILDCARD_HOST)
    )


def operations_that_allow(operation: AclOperation) -> tuple[AclOperation, ...]:
    """Return an operation, and then the operations that imply it."""
    return (operation, *_IMPLIED_BY.get(operation, ()))


def _entries_of(
    requester: Requester, operation: AclOperation, permission: AclPermission
) -> Iterator[AccessEntry]:
    """Yield each entry that could exist and would apply to the requester's operation."""
    for principal in dict.fromkeys((requester.principal, WILDCARD_PRINCIPAL)):
        for host in dict.fromkeys((requester.host, WILDCARD_HOST)):
            for each in dict.fromkeys((operation, AclOperation.ALL)):
                yield AccessEntry(principal, host, each, permission)


def _begins_with_one(name: str, prefixes: Sequence[set[str]]) -> bool:
    """Return True if a name begins with a prefix in one of the sets."""
    return any(
        name[:length] in of_entry for length in range(len(name) + 1) for of_entry in prefixes
    )
