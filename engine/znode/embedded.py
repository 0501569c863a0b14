"""A client of the store in the same process: every call has its result at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.znode.errors import SessionExpired
from engine.znode.model import (
    ANY_VERSION,
    Create,
    Delete,
    Operation,
    OperationResult,
    SessionEvent,
    SetData,
    Stat,
    Watcher,
    WatchKind,
)
from engine.znode.protection import protected
from engine.znode.store import ZnodeStore


def _ignore(event: SessionEvent) -> None:
    """Ignore a session event: no listener is set."""


def _do_nothing() -> None:
    """Do nothing: no callback for the close is set."""


def _never() -> bool:
    """Return False, as the link to the store is never interrupted by default."""
    return False


class EmbeddedZnodeClient:
    """A session with the store of this process; see `client.py` for the rules."""

    def __init__(
        self,
        store: ZnodeStore,
        session_timeout_ms: int,
        creator: tuple[str, str] | None = None,
    ) -> None:
        """Create without a session.

        With a `creator` (scheme and id), new nodes get the ACLs of a protected cluster.
        """
        self._store = store
        self._creator = creator
        self._session_timeout_ms = session_timeout_ms
        #: 0 before `connect`.
        self._session_id = 0
        #: Whether the store has the session; False again when it expired or was closed.
        self._is_open = False
        #: Called at each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore
        #: Called by `close`: the session needs no more heartbeats.
        self.on_closed: Callable[[], None] = _do_nothing
        #: Returns True if heartbeats do not reach the store now, because the link is cut.
        self.is_silent: Callable[[], bool] = _never

    @property
    def session_id(self) -> int:
        """Return the id of the session, 0 before the first."""
        return self._session_id

    @property
    def is_open(self) -> bool:
        """Return True while the session has neither been closed nor expired."""
        return self._is_open

    async def connect(self) -> None:
        """Begin a session, unless one is open."""
        if self._is_open:
            return
        self._session_id = self._store.open_session(
            self._session_timeout_ms, self._on_expired, is_local=True
        )
        self._is_open = True
        self.on_session(SessionEvent.CONNECTED)

    async def close(self) -> None:
        """End the session, its ephemeral nodes and watches; closing twice is allowed."""
        self.on_closed()
        if self._is_open:
            self._is_open = False
            self._store.close_session(self._session_id)

    def leave(self) -> None:
        """Stop using the session without notifying the store, which ends it by its timeout."""
        self.on_closed()
        if self._is_open:
            self._is_open = False
            self._store.drop_watches(self._session_id)

    def heartbeat(self) -> None:
        """Send the store a heartbeat; the loop's timer calls this three times per timeout."""
        if self.is_silent():
            return
        self._store.heartbeat(self._live_session())

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path; a sequential node's path has ten digits at its end."""
        operation = protected(Create(path, data, ephemeral, sequential), self._creator)
        created = self._store.apply(self._live_session(), operation)
        assert isinstance(created, str)
        return created

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        return self._store.get(self._live_session(), path)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        stat = self._store.apply(self._live_session(), SetData(path, data, version))
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version.

        Raises NoNode, NotEmpty, BadVersion.
        """
        self._store.apply(self._live_session(), Delete(path, version))

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        return self._store.exists(self._live_session(), path)

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        names, _ = self._store.children(self._live_session(), path)
        return names

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none, and return their results in order.

        The error of a failed operation has its `operation_index`.
        """
        made = operations
        if self._creator is not None:
            made = [protected(each, self._creator) for each in operations]
        return self._store.multi(self._live_session(), made)

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must exist (NoNode)."""
        self._store.watch(self._live_session(), path, kind, watcher)

    def _live_session(self) -> int:
        """Return the id of the session; raises SessionExpired once it has ended."""
        if not self._is_open:
            raise SessionExpired(self._session_id)
        return self._session_id

    def _on_expired(self) -> None:
        """Report the expiry of the session, unless it was closed before."""
        if not self._is_open:
            return
        self._is_open = False
        self.on_session(SessionEvent.EXPIRED)
