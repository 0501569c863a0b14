"""Access rules and filters of them, by Kafka's numbers.

```
pattern   TOPIC  LITERAL  payments   one resource; the name * means all
          TOPIC  PREFIXED pay        all whose names begin so
entry     User:bob  *  READ  ALLOW   principal, host, operation, permission
```

A filter's fields are None or ANY where they match all. A number without a meaning is UNKNOWN and
matches nothing.

Source: KIP-11, KIP-290; org.apache.kafka.common.acl, org.apache.kafka.common.resource.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

CLUSTER_NAME: Final = "kafka-cluster"
#: A literal name that means every resource of its kind.
WILDCARD_NAME: Final = "*"
#: A host that means all.
WILDCARD_HOST: Final = "*"
#: A principal that means every user.
WILDCARD_PRINCIPAL: Final = "User:*"


class AclOperation(IntEnum):
    """The operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    #: Since 4.0 (KIP-939); clients know it, the embedded brokers of 3.9.1 do not.
    TWO_PHASE_COMMIT = 15


class AclResource(IntEnum):
    """The kind of the resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Types of resource patterns; MATCH is of filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """Permission of an entry: allow or deny."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


#: Kinds that have rules.
CONCRETE_RESOURCES: Final = tuple(kind for kind in AclResource if kind > AclResource.ANY)

E = TypeVar("E", AclOperation, AclResource, PatternType, AclPermission)


def from_number(kind: type[E], number: int) -> E:
    """Return the member of a number, UNKNOWN for a number without a meaning."""
    try:
        return kind(number)
    except ValueError:
        return kind.UNKNOWN


def pascal_name(member: E) -> str:
    """Return a member's name as znodes have it: `TransactionalId`."""
    return "".join(word.capitalize() for word in member.name.split("_"))


def from_name(kind: type[E], name: str) -> E:
    """Return the member of a name: `TransactionalId`, `TRANSACTIONAL_ID`; UNKNOWN for others."""
    wanted = name.upper().replace("_", "")
    return next((member for member in kind if pascal_name(member).upper() == wanted), kind.UNKNOWN)


class AclPattern(NamedTuple):
    """The resources that rules are about."""

    kind: AclResource
    name: str
    pattern_type: PatternType


class AccessEntry(NamedTuple):
    """The principal, host, operation and permission of one rule."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def is_unknown(self) -> bool:
        """Return whether a part of it has no meaning here."""
        return not (self.operation and self.permission)


class AclBinding(NamedTuple):
    """A rule: an entry of a pattern."""

    pattern: AclPattern
    entry: AccessEntry

    @property
    def is_unknown(self) -> bool:
        """Return whether a part of it has no meaning here."""
        return not (self.pattern.kind and self.pattern.pattern_type) or self.entry.is_unknown


class PatternFilter(NamedTuple):
    """A filter of resource patterns."""

    kind: AclResource
    name: str | None
    pattern_type: PatternType

    def matches(self, pattern: AclPattern) -> bool:
        """Return whether a pattern is meant; with MATCH, whether it is about the name."""
        if self.kind not in (AclResource.ANY, pattern.kind):
            return False
        wanted = self.pattern_type
        if wanted not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if wanted is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD_NAME)

    def exact_patterns(self) -> list[AclPattern]:
        """Return the patterns that can match, if kind and name determine them; else none."""
        if self.kind <= AclResource.ANY or self.name is None:
            return []
        if self.pattern_type is PatternType.ANY:
            types = [PatternType.LITERAL, PatternType.PREFIXED]
        elif self.pattern_type > PatternType.MATCH:
            types = [self.pattern_type]
        else:
            types = []
        return [AclPattern(self.kind, self.name, pattern_type) for pattern_type in types]


class EntryFilter(NamedTuple):
    """A filter of access control entries."""

    principal: str | None
    host: str | None
    operation: AclOperation
    permission: AclPermission

    def matches(self, entry: AccessEntry) -> bool:
        """Return whether an entry is meant."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )


class AclFilter(NamedTuple):
    """A filter of ACLs: by pattern and by entry."""

    patterns: PatternFilter
    entries: EntryFilter

    def matches(self, pattern: AclPattern, entry: AccessEntry) -> bool:
        """Return whether a rule is meant."""
        return self.patterns.matches(pattern) and self.entries.matches(entry)
