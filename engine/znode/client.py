"""The engine's interface to a metadata store, embedded or a real ZooKeeper.

All calls are of one session. A watch is set before the read that it guards, so that no change
is missed between the two:

```
await client.watch("/brokers/ids", WatchKind.CHILDREN, on_change)
names, _ = await client.children("/brokers/ids")      # later changes call on_change, once
```

Watchers and session listeners are called in the order of the changes, each before a later read
can show its change (Z3). They only note the event: they neither call the client nor raise.

| error | meaning |
|---|---|
| NodeError | refused: nothing was changed (`errors.py` has the reasons) |
| SessionExpired | refused: ephemeral nodes and watches are removed; `connect` begins another |
| ConnectionLost | a write may or may not have been executed: read before trying again |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.znode.model import (
    ANY_VERSION,
    Operation,
    OperationResult,
    SessionEvent,
    Stat,
    Watcher,
    WatchKind,
)


class ZnodeClient(Protocol):
    """A session with a metadata store."""

    #: Called at each change of the session; set it before `connect`.
    on_session: Callable[[SessionEvent], None]

    @property
    def session_id(self) -> int:
        """Return the id of the session, 0 before the first."""
        ...

    async def connect(self) -> None:
        """Begin a session; after an expiry, a new one without the last one's nodes and watches."""
        ...

    async def close(self) -> None:
        """End the session, its ephemeral nodes and watches; closing twice is allowed."""
        ...

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path; a sequential node's path has ten digits at its end."""
        ...

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        ...

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version.

        Raises NoNode, NotEmpty, BadVersion.
        """
        ...

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        ...

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        ...

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none, and return their results in order.

        The error of a failed operation has its `operation_index`.
        """
        ...

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch: `watcher` is called at the next change, once.

        For children the node must exist (NoNode).
        """
        ...
