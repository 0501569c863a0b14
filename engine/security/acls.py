"""ACLs and filters of ACLs, with Kafka's numbers.

```
pattern   TOPIC  LITERAL  payments   one resource; the name * means all
          TOPIC  PREFIXED pay        all resources whose name begins with it
entry     User:bob  *  READ  ALLOW   principal, host, operation, permission
```

A filter's field is None or ANY if it matches every value. An unknown number becomes UNKNOWN and
matches nothing.

Source: KIP-11, KIP-290; org.apache.kafka.common.acl, org.apache.kafka.common.resource.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

CLUSTER_NAME: Final = "kafka-cluster"
#: The literal name for every resource of a type.
WILDCARD_NAME: Final = "*"
#: The host for every host.
WILDCARD_HOST: Final = "*"
#: The principal for every user.
WILDCARD_PRINCIPAL: Final = "User:*"


class AclOperation(IntEnum):
    """The operations on resources."""

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
    #: Since 4.0 (KIP-939); known to clients, but not to the embedded brokers of 3.9.1.
    TWO_PHASE_COMMIT = 15


class AclResource(IntEnum):
    """The resource types."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The types of resource patterns; MATCH is only for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """The permission of an entry."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


#: The resource types that can have ACLs.
CONCRETE_RESOURCES: Final = tuple(kind for kind in AclResource if kind > AclResource.ANY)

E = TypeVar("E", AclOperation, AclResource, PatternType, AclPermission)


def from_number(kind: type[E], number: int) -> E:
    """Return the member of an enumeration with a number, UNKNOWN if there is none."""
    try:
        return kind(number)
    except ValueError:
        return kind.UNKNOWN


def pascal_name(member: E) -> str:
    """Return a member's name as in znodes, such as `TransactionalId`."""
    return "".join(word.capitalize() for word in member.name.split("_"))


def from_name(kind: type[E], name: str) -> E:
    """Return the member of an enumeration with a name, UNKNOWN if there is none.

    The name is as in znodes or as in Python; upper and lower case are equal.
    """
    wanted = name.upper().replace("_", "")
    return next((member for member in kind if pascal_name(member).upper() == wanted), kind.UNKNOWN)


class AclPattern(NamedTuple):
    """A resource pattern: the resources to which ACLs apply."""

    kind: AclResource
    name: str
    pattern_type: PatternType


class AccessEntry(NamedTuple):
    """The principal, host, operation and permission of one ACL."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def is_unknown(self) -> bool:
        """True if the entry has an operation or permission that this release does not know."""
        return not (self.operation and self.permission)


class AclBinding(NamedTuple):
    """An ACL: a resource pattern with an entry."""

    pattern: AclPattern
    entry: AccessEntry

    @property
    def is_unknown(self) -> bool:
        """True if the ACL has a part that this release does not know."""
        return not (self.pattern.kind and self.pattern.pattern_type) or self.entry.is_unknown


class PatternFilter(NamedTuple):
    """A filter of resource patterns."""

    kind: AclResource
    name: str | None
    pattern_type: PatternType

    def matches(self, pattern: AclPattern) -> bool:
        """Return True if the filter matches a pattern.

        With MATCH, if the pattern applies to its name.
        """
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
        """Return the only patterns that can match, if kind and name are given; otherwise empty."""
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
    """A filter of entries."""

    principal: str | None
    host: str | None
    operation: AclOperation
    permission: AclPermission

    def matches(self, entry: AccessEntry) -> bool:
        """Return True if the filter matches an entry."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )


class AclFilter(NamedTuple):
    """A filter of ACLs, by pattern and by entry."""

    patterns: PatternFilter
    entries: EntryFilter

    def matches(self, pattern: AclPattern, entry: AccessEntry) -> bool:
        """Return True if the filter matches an ACL: an entry of a pattern."""
        return self.patterns.matches(pattern) and self.entries.matches(entry)
