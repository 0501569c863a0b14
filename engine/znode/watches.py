"""Watches: the watchers of each node, and the watches that an event fires. Pure.

```
event             data watches of the node   child watches of the node   ... of the parent
CREATED           CREATED                    -                           (its own event)
DATA_CHANGED      DATA_CHANGED               -                           -
DELETED           DELETED                    DELETED, once per watcher   (its own event)
CHILDREN_CHANGED  -                          CHILDREN_CHANGED            -
```

A persistent watch gets all four events of its node and stays set. A recursive one gets those of all
descendants too, but no CHILDREN_CHANGED. A watcher gets each event once.

Source: ZooKeeper's DataTree and WatchManager; invariant Z3.
Differs: a read with a watch leaves a persistent watch of the same session in place, where
ZooKeeper's replaces it.
"""

from __future__ import annotations

from engine.limits import ZNODE_WATCHES_MAX
from engine.znode.errors import ZnodeLimitExceeded
from engine.znode.model import EventType, Watcher, WatchEvent, WatchKind
from engine.znode.names import ROOT, parent_of


class WatchTable:
    """The watches of all sessions."""

    def __init__(self) -> None:
        """Create without watches."""
        #: One-shot watches by kind and path: watchers with their session, in the order set.
        self._watchers: dict[tuple[WatchKind, str], dict[tuple[int, Watcher], None]] = {}
        #: Kinds and paths of each session's watches, to drop them at its end.
        self._paths: dict[int, set[tuple[WatchKind, str]]] = {}
        #: Persistent watches by path, with whether each is recursive.
        self._persistent: dict[str, dict[tuple[int, Watcher], bool]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, session_id: int, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch of a session; the same watch set twice fires once.

        Raises ZnodeLimitExceeded above ZNODE_WATCHES_MAX.
        """
        watchers = self._watchers.setdefault((kind, path), {})
        if (session_id, watcher) in watchers:
            return
        if self._count >= ZNODE_WATCHES_MAX:
            if not watchers:
                del self._watchers[kind, path]
            raise ZnodeLimitExceeded(path, "watches", ZNODE_WATCHES_MAX)
        watchers[session_id, watcher] = None
        self._paths.setdefault(session_id, set()).add((kind, path))
        self._count += 1

    def add_persistent(
        self, session_id: int, path: str, watcher: Watcher, *, is_recursive: bool
    ) -> None:
        """Set a persistent watch of a session, or change whether an existing one is recursive.

        Raises ZnodeLimitExceeded above ZNODE_WATCHES_MAX.
        """
        watchers = self._persistent.get(path, {})
        if (session_id, watcher) not in watchers:
            if self._count >= ZNODE_WATCHES_MAX:
                raise ZnodeLimitExceeded(path, "watches", ZNODE_WATCHES_MAX)
            self._count += 1
        self._persistent.setdefault(path, {})[session_id, watcher] = is_recursive

    def has(self, session_id: int, path: str, kind: WatchKind | None) -> bool:
        """Return True if a session has a watch of a kind on a node; None for `kind` means any."""
        kinds = list(WatchKind) if kind is None else [kind]
        tables = [self._watchers.get((each, path), {}) for each in kinds]
        found = {owner for table in tables for owner, _ in table}
        if kind is None:
            found |= {owner for owner, _ in self._persistent.get(path, {})}
        return session_id in found

    def remove(self, session_id: int, path: str, kind: WatchKind | None) -> None:
        """Remove a session's watches of a kind on a node; None for all kinds."""
        for each in WatchKind if kind is None else (kind,):
            if (each, path) in self._watchers:
                self._drop_one_shot(session_id, (each, path))
                self._paths.get(session_id, set()).discard((each, path))
        if kind is None:
            self._drop_persistent(session_id, path)

    def fire(self, event: WatchEvent) -> list[Watcher]:
        """Remove the one-shot watches that an event fires.

        Return all watchers to call, in order.
        """
        path = event.path
        if event.type is EventType.CHILDREN_CHANGED:
            taken = self._remove_watchers(WatchKind.CHILDREN, path)
        else:
            taken = self._remove_watchers(WatchKind.DATA, path)
        if event.type is EventType.DELETED:
            taken.update(self._remove_watchers(WatchKind.CHILDREN, path))
        if self._persistent:
            taken.update(self._persistent_watchers(event))
        return [watcher for _, watcher in taken]

    def _persistent_watchers(self, event: WatchEvent) -> dict[tuple[int, Watcher], None]:
        """Return the persistent watches that an event fires, those of its own node first."""
        is_of_children = event.type is EventType.CHILDREN_CHANGED
        own = self._persistent.get(event.path, {})
        found = {key: None for key, recursive in own.items() if not (recursive and is_of_children)}
        path = event.path
        while path != ROOT and not is_of_children:
            path = parent_of(path)
            above = self._persistent.get(path, {})
            found.update({key: None for key, recursive in above.items() if recursive})
        return found

    def drop_session(self, session_id: int) -> None:
        """Remove all watches of a session."""
        for path in list(self._persistent):
            self._drop_persistent(session_id, path)
        for key in self._paths.pop(session_id, ()):
            self._drop_one_shot(session_id, key)

    def _drop_one_shot(self, session_id: int, key: tuple[WatchKind, str]) -> None:
        """Remove a session's one-shot watches of one kind on a path."""
        watchers = self._watchers[key]
        for owner, watcher in list(watchers):
            if owner == session_id:
                del watchers[owner, watcher]
                self._count -= 1
        if not watchers:
            del self._watchers[key]

    def _drop_persistent(self, session_id: int, path: str) -> None:
        """Remove a session's persistent watches on a path."""
        watchers = self._persistent.get(path, {})
        for key in [key for key in watchers if key[0] == session_id]:
            del watchers[key]
            self._count -= 1
        if not watchers:
            self._persistent.pop(path, None)

    def _remove_watchers(self, kind: WatchKind, path: str) -> dict[tuple[int, Watcher], None]:
        """Remove and return the one-shot watchers of a path, in the order they were set."""
        key = (kind, path)
        taken = self._watchers.pop(key, {})
        for session_id, _ in taken:
            paths = self._paths.get(session_id)
            if paths is not None:
                paths.discard(key)
        self._count -= len(taken)
        return taken
