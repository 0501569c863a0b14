"""One-shot watches: the watchers of each node, and the watches that an event fires. Pure.

```
event             data watches of the node   child watches of the node   ... of the parent
CREATED           CREATED                    -                           (its own event)
DATA_CHANGED      DATA_CHANGED               -                           -
DELETED           DELETED                    DELETED, once per watcher   (its own event)
CHILDREN_CHANGED  -                          CHILDREN_CHANGED            -
```

Source: ZooKeeper's DataTree and WatchManager; invariant Z3.
"""

from __future__ import annotations

from engine.limits import ZNODE_WATCHES_MAX
from engine.znode.errors import ZnodeLimitExceeded
from engine.znode.model import EventType, Watcher, WatchEvent, WatchKind


class WatchTable:
    """The watches of all sessions."""

    def __init__(self) -> None:
        # By kind and path: watchers in the order they came, with the session of each.
        self._watchers: dict[tuple[WatchKind, str], dict[tuple[int, Watcher], None]] = {}
        self._paths: dict[int, set[tuple[WatchKind, str]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, session_id: int, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a watch; the same one twice fires once."""
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

    def fire(self, event: WatchEvent) -> list[Watcher]:
        """Remove the watches that an event fires; return their watchers in order."""
        path = event.path
        if event.type is EventType.CHILDREN_CHANGED:
            return [watcher for _, watcher in self._remove_watchers(WatchKind.CHILDREN, path)]
        taken = self._remove_watchers(WatchKind.DATA, path)
        if event.type is EventType.DELETED:
            taken.update(self._remove_watchers(WatchKind.CHILDREN, path))
        return [watcher for _, watcher in taken]

    def drop_session(self, session_id: int) -> None:
        """Remove all watches of a session."""
        for key in self._paths.pop(session_id, ()):
            watchers = self._watchers[key]
            for owner, watcher in list(watchers):
                if owner == session_id:
                    del watchers[owner, watcher]
                    self._count -= 1
            if not watchers:
                del self._watchers[key]

    def _remove_watchers(self, kind: WatchKind, path: str) -> dict[tuple[int, Watcher], None]:
        key = (kind, path)
        taken = self._watchers.pop(key, {})
        for session_id, _ in taken:
            paths = self._paths.get(session_id)
            if paths is not None:
                paths.discard(key)
        self._count -= len(taken)
        return taken
