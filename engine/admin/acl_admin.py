"""ACLs in znodes: read into a cache, and changed as in Kafka.

```
read the node ── compute the entries ── same version? ── multi { set, create, or delete if none is
     ^                                        no │           left; if the entries changed:
     └────────────────────────────────────────────┘          create …-changes/acl_changes_<S> }
```

The broker that changes an ACL applies it at once, the others when they read the change note. An
entry that exists already is written again, without a note.

Source: ZN:acl; AclAuthorizer.updateResourceAcls, KafkaZkClient.createAclPaths.
Differs: the node is read before the first attempt too, while Kafka begins with its cache; a node
that cannot be parsed is an error, while Kafka treats invalid JSON as empty. Kafka writes the note
in a separate request: if that is never sent, other brokers keep the old entries, even if the same
change is requested again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from engine.errors import EngineError, ZnodeError
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    CONCRETE_RESOURCES,
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
    from_name,
    pascal_name,
)
from engine.security.principals import is_principal
from engine.znode.acl_values import (
    AclChange,
    AclEntry,
    decode_acls,
    encode_acl_change,
    encode_acls,
)
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NodeExists, NoNode
from engine.znode.model import Create, Delete, Operation, SetData
from engine.znode.paths import (
    ACL_CHANGE_PREFIX,
    ACL_CHANGES,
    ACLS,
    EXTENDED_ACL_CHANGE_PREFIX,
    EXTENDED_ACL_CHANGES,
    EXTENDED_ACLS,
    acl_path,
)

_ROOTS = {PatternType.LITERAL: ACLS, PatternType.PREFIXED: f"{EXTENDED_ACLS}/prefixed"}
#: Kafka's number of attempts to write a node that other brokers write too.
_WRITES_MAX = 11

Compute = Callable[[tuple[AccessEntry, ...]], Iterable[AccessEntry]]


class AclWriteFailed(ZnodeError):
    """The node of a resource pattern could not be written."""

    def __init__(self, pattern: AclPattern, reason: str) -> None:
        super().__init__(f"{pattern.kind.name} {pattern.name}: {reason}")
        self.pattern = pattern


class _Addition:
    """Adds entries to a resource pattern."""

    def __init__(self, pattern: AclPattern, added: Sequence[AccessEntry]) -> None:
        self._pattern = pattern
        self._added = added

    def entries(self, before: tuple[AccessEntry, ...]) -> tuple[AccessEntry, ...]:
        """Return a pattern's stored entries `before` with the added ones, for `AclAdmin._update`.

        Raises AclWriteFailed for an invalid principal.
        """
        for entry in self._added:
            if not is_principal(entry.principal):
                reason = f"{entry.principal!r} is no principal of a type and a name"
                raise AclWriteFailed(self._pattern, reason)
        return (*before, *self._added)


class _Removal:
    """Removes a pattern's entries that filters match; `removed` has the filter of each one."""

    def __init__(self, pattern: AclPattern, filters: Sequence[AclFilter]) -> None:
        self.removed: dict[AccessEntry, int] = {}
        self._pattern = pattern
        self._filters = filters

    def entries(self, before: tuple[AccessEntry, ...]) -> list[AccessEntry]:
        """Return those of a pattern's stored entries that no filter matches.

        The removed entries are recorded under the first filter that matched them.
        """
        left = []
        for entry in before:
            indexes = (
                i for i, one in enumerate(self._filters) if one.matches(self._pattern, entry)
            )
            index = next(indexes, None)
            if index is None:
                left.append(entry)
            else:
                self.removed.setdefault(entry, index)
        return left


class DeletedAcl(NamedTuple):
    """An ACL that a filter matched; `error` is None if it was deleted."""

    binding: AclBinding
    error: EngineError | None


class AclAdmin:
    """Keeps a broker's ACL cache equal to the znodes, and changes both."""

    def __init__(self, znodes: ZnodeClient, cache: AclCache) -> None:
        """Create the reader and writer of ACLs in ZooKeeper.

        `cache` is the broker's cache, by which requests are authorized.
        """
        self.cache = cache
        #: Called when the cache goes from no ACLs to some or back, and after all were read.
        #: Sessions take their fast path only without ACLs: no other change concerns them.
        self.on_change: Callable[[], None] = lambda: None
        self._znodes = znodes
        #: Counts updates of the cache. If it grew during a write, the znode is read again, because
        #: the update may be newer than the write.
        self._update_count = 0

    async def create_paths(self) -> None:
        """Create the persistent parent nodes of ACLs and change notes, where missing."""
        kinds = [pascal_name(kind) for kind in CONCRETE_RESOURCES]
        literal, prefixed = _ROOTS.values()
        for path in (
            literal,
            *(f"{literal}/{kind}" for kind in kinds),
            EXTENDED_ACLS,
            prefixed,
            *(f"{prefixed}/{kind}" for kind in kinds),
            ACL_CHANGES,
            EXTENDED_ACL_CHANGES,
        ):
            try:
                await self._znodes.create(path)
            except NodeExists:
                continue

    async def load(self, pattern_type: PatternType) -> None:
        """Read all ACLs of one pattern type into the cache; patterns without a node are removed."""
        found = []
        for kind_name in await self._znodes.children(_ROOTS[pattern_type]):
            kind = from_name(AclResource, kind_name)
            if kind not in CONCRETE_RESOURCES:
                continue
            for name in await self._znodes.children(f"{_ROOTS[pattern_type]}/{kind_name}"):
                pattern = AclPattern(kind, name, pattern_type)
                found.append(pattern)
                await self.refresh(pattern)
        others = [each for each in self.cache.patterns() if each.pattern_type != pattern_type]
        self.cache.keep((*found, *others))
        self.on_change()

    async def refresh(self, pattern: AclPattern) -> None:
        """Read the ACLs of one resource pattern into the cache, after another broker's change."""
        entries, _ = await self._read(pattern)
        self._cache_entries(pattern, entries)

    async def create(self, bindings: Sequence[AclBinding]) -> list[EngineError | None]:
        """Add ACLs to ZooKeeper and the cache; return the error of each, None for success.

        If an ACL cannot be added, no ACL of the same resource pattern is.
        """
        errors: dict[AclPattern, EngineError | None] = {}
        for pattern in dict.fromkeys(binding.pattern for binding in bindings):
            added = [binding.entry for binding in bindings if binding.pattern == pattern]
            errors[pattern] = await self._try_update(pattern, _Addition(pattern, added).entries)
        return [errors[binding.pattern] for binding in bindings]

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[DeletedAcl]]:
        """Delete the ACLs that match at least one filter; return them by filter.

        An ACL is returned only under the first filter that matched.
        """
        exact = [pattern for one in filters for pattern in one.patterns.exact_patterns()]
        results: list[list[DeletedAcl]] = [[] for _ in filters]
        for pattern in dict.fromkeys((*self.cache.patterns(), *exact)):
            if not any(one.patterns.matches(pattern) for one in filters):
                continue
            removal = _Removal(pattern, filters)
            error = await self._try_update(pattern, removal.entries)
            for entry, index in removal.removed.items():
                results[index].append(DeletedAcl(AclBinding(pattern, entry), error))
        return results

    async def _try_update(self, pattern: AclPattern, compute: Compute) -> EngineError | None:
        """Change a pattern's entries as `_update` does; return the error, None for success."""
        try:
            await self._update(pattern, compute)
        except EngineError as error:
            return error
        return None

    async def _update(self, pattern: AclPattern, compute: Compute) -> None:
        """Replace a pattern's stored entries by `compute` of them, and notify the other brokers.

        If other brokers write the same node, it is repeated; raises AclWriteFailed after
        _WRITES_MAX
        attempts.
        """
        for _ in range(_WRITES_MAX):
            before, version = await self._read(pattern)
            after = tuple(dict.fromkeys(compute(before)))
            notes = [_change_note(pattern)] if set(after) != set(before) else []
            known_count = self._update_count
            if await self._write(pattern, after, version, notes):
                break
        else:
            raise AclWriteFailed(pattern, f"others wrote it too, {_WRITES_MAX} times")
        if known_count != self._update_count:
            # A write whose response was lost may be confirmed late: entries that were read
            # meanwhile may be newer.
            after, _ = await self._read(pattern)
        self._cache_entries(pattern, after)

    async def _read(self, pattern: AclPattern) -> tuple[tuple[AccessEntry, ...], int | None]:
        """Return a pattern's stored entries and the znode's version; ((), None) without a node."""
        path = _path_of(pattern)
        try:
            data, stat = await self._znodes.get(path)
        except NoNode:
            return (), None
        entries = (_from_stored(stored) for stored in decode_acls(data, path))
        return tuple(dict.fromkeys(entries)), stat.version

    async def _write(
        self,
        pattern: AclPattern,
        entries: Sequence[AccessEntry],
        version: int | None,
        notes: Sequence[Create],
    ) -> bool:
        """Write a pattern's node and the change notes.

        Returns False if it changed since it was read.

        `version` is that of the read node, None without one. Without entries the node is deleted.
        """
        if version is None and not entries:
            return True
        path = _path_of(pattern)
        data = encode_acls(_to_stored(entry) for entry in entries)
        write: Operation
        if version is None:
            write = Create(path, data)
        elif entries:
            write = SetData(path, data, version)
        else:
            write = Delete(path, version)
        try:
            await self._znodes.multi((write, *notes))
        except (BadVersion, NodeExists):
            return False
        except NoNode as error:
            if version is None or error.operation_index != 0:
                raise
            # The others removed all entries.
            return False
        return True

    def _cache_entries(self, pattern: AclPattern, entries: Iterable[AccessEntry]) -> None:
        """Put a pattern's entries into the cache.

        Calls `on_change` if the cache became empty or got its first entry.
        """
        self._update_count += 1
        was_empty = self.cache.is_empty
        self.cache.set(pattern, entries)
        if self.cache.is_empty is not was_empty:
            self.on_change()


def pattern_of(change: AclChange) -> AclPattern:
    """Return the resource pattern that a change note names."""
    return AclPattern(
        from_name(AclResource, change.resource_type),
        change.name,
        from_name(PatternType, change.pattern_type),
    )


def _change_note(pattern: AclPattern) -> Create:
    """Return the operation that creates a pattern's change note, which the other brokers watch.

    Prefixed patterns have a separate directory.
    """
    is_literal = pattern.pattern_type is PatternType.LITERAL
    prefix = ACL_CHANGE_PREFIX if is_literal else EXTENDED_ACL_CHANGE_PREFIX
    change = AclChange(pattern.kind.name, pattern.name, pattern.pattern_type.name)
    return Create(prefix, encode_acl_change(change), sequential=True)


def _path_of(pattern: AclPattern) -> str:
    """Return the path of the znode with a pattern's ACLs."""
    is_prefixed = pattern.pattern_type is PatternType.PREFIXED
    return acl_path(pascal_name(pattern.kind), pattern.name, prefixed=is_prefixed)


def _from_stored(stored: AclEntry) -> AccessEntry:
    """Return the entry of a znode with its operation and permission parsed."""
    return AccessEntry(
        stored.principal,
        stored.host,
        from_name(AclOperation, stored.operation),
        from_name(AclPermission, stored.permission_type),
    )


def _to_stored(entry: AccessEntry) -> AclEntry:
    """Return an entry with the names that the znode's JSON has."""
    return AclEntry(
        entry.principal,
        pascal_name(entry.permission),
        entry.host,
        pascal_name(entry.operation),
    )
