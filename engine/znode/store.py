"""The embedded metadata store: transactions over the tree, made durable, then sent to watchers.

The steps of a write:

```
1 check the session
2 change the tree, or refuse and undo
3 commit to the journal under the next zxid
4 fire the watches, in the order of the changes
```

so that watchers only get durable changes, and the writer gets the response after all
watchers are notified. A crash before 3 loses a write that was not reported; after 3 the write is
there when the store opens again, even if no client got the response.

Sessions are durable as in ZooKeeper, with the secret of their passwords. After a start each client
has the whole timeout to reconnect; sessions of clients in the ended process are ended.
Beginning and ending a session take a zxid each; the end removes its nodes in that one (Z2).

Source: ZooKeeper's semantics (`znodes.md` §7); invariants Z1 ... Z4.
Differs: a single server, so a response is never older than another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from engine.host.ports import Clock, Entropy
from engine.limits import ZNODE_MULTI_OPERATIONS_MAX, ZNODE_SESSIONS_MAX
from engine.znode.errors import NoAuth, NodeError, NoNode, ZnodeLimitExceeded, ZnodeStoreFailed
from engine.znode.journal import Journal
from engine.znode.model import (
    Delete,
    NodeAclEntry,
    Operation,
    OperationResult,
    SetAcl,
    Stat,
    Watcher,
    WatchEvent,
    WatchKind,
)
from engine.znode.names import ROOT, check_path, parent_of
from engine.znode.permissions import Identities, Permission, permits
from engine.znode.sessions import OnExpired, SessionTable
from engine.znode.tree import ZnodeTree
from engine.znode.watches import WatchTable

# The top byte is the server's number in ZooKeeper; so an id is never 0 and never a zxid. Sessions
# of clients in the store's process have another top byte: they end with the process.
_SESSION_ID_BASE = 1 << 56
_LOCAL_SESSION_ID_BASE = 2 << 56
_SECRET_BYTES = 32


class ZnodeStore:
    """The store, called synchronously from one thread. Calls of clients name their session."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        """Load the journal; raises ZnodeStoreFailed if it is damaged."""
        self._journal = journal
        self._clock = clock
        self._tree = ZnodeTree()
        #: Watches and sessions of all clients.
        self._watches = WatchTable()
        self._sessions = SessionTable()
        #: Events for watchers. Watchers may change the store: the events of such changes are
        #: queued, and delivered after those before them.
        self._to_deliver: deque[tuple[Watcher, WatchEvent]] = deque()
        #: Whether a caller up the stack is delivering events: it delivers those queued meanwhile.
        self._delivering = False
        #: The failed write of the journal; every later change raises it. None without one.
        self._failure: ZnodeStoreFailed | None = None
        stored = journal.load()
        for path, node in stored.nodes:
            self._tree.load(path, node)
        orphans = self._tree.orphans()
        if orphans:
            raise ZnodeStoreFailed(orphans[0], "load", "the node has no parent")
        now_ms = clock.monotonic_ms()
        for session_id, timeout_ms in stored.sessions.items():
            self._sessions.add(session_id, timeout_ms, now_ms, None)
        #: Zxid of the last transaction.
        self._zxid = stored.zxid
        #: Secret for the passwords of sessions; empty until the first remote session.
        self._secret = stored.secret

    @property
    def zxid(self) -> int:
        """Return the zxid of the last transaction."""
        return self._zxid

    @property
    def node_count(self) -> int:
        """Return the number of nodes, with the root."""
        return len(self._tree)

    @property
    def watch_count(self) -> int:
        """Return the number of watches of all sessions."""
        return len(self._watches)

    def close(self) -> None:
        """Close the journal; sessions are not ended."""
        self._journal.close()

    # -- sessions ------------------------------------------------------------------------------

    def session_ids(self) -> list[int]:
        """Return the ids of the open sessions, oldest first."""
        return self._sessions.ids()

    def session_secret(self, entropy: Entropy) -> bytes:
        """Return the secret that sessions' passwords are derived from; created at the first call.

        It is as durable as the sessions: a client that reconnects after a restart of the store's
        process continues its session. Errors: ZnodeStoreFailed.
        """
        if not self._secret:
            secret = entropy.random_bytes(_SECRET_BYTES)
            self._journal.keep_secret(secret)
            self._secret = secret
        return self._secret

    def end_local_sessions(self) -> None:
        """End the sessions of clients that ended with an earlier process.

        All sessions if no secret is stored: without their passwords no client can resume one.
        """
        for session_id in self._sessions.ids():
            if session_id >= _LOCAL_SESSION_ID_BASE or not self._secret:
                self._end_session(session_id)

    def open_session(
        self, timeout_ms: int, on_expired: OnExpired | None = None, *, is_local: bool = False
    ) -> int:
        """Begin a session and return its id; `on_expired` is called if its timeout ends it.

        `is_local` is for a client in this process, whose session no later process can resume.
        """
        assert timeout_ms > 0
        if len(self._sessions) >= ZNODE_SESSIONS_MAX:
            raise ZnodeLimitExceeded(ROOT, "sessions", ZNODE_SESSIONS_MAX)
        base = _LOCAL_SESSION_ID_BASE if is_local else _SESSION_ID_BASE
        session_id = base | (self._zxid + 1)
        self._commit({session_id: timeout_ms})
        self._sessions.add(session_id, timeout_ms, self._clock.monotonic_ms(), on_expired)
        return session_id

    def resume_session(self, session_id: int, on_expired: OnExpired | None = None) -> int:
        """Continue a session after a lost connection or a restart; return its timeout in ms."""
        return self._sessions.take_over(session_id, self._clock.monotonic_ms(), on_expired)

    def heartbeat(self, session_id: int) -> None:
        """Restart a session's timeout, as each of its calls does; raise SessionExpired."""
        self._sessions.touch(session_id, self._clock.monotonic_ms())

    def close_session(self, session_id: int) -> None:
        """End a session at its client's request, with nodes and watches; raises SessionExpired."""
        self._sessions.touch(session_id, self._clock.monotonic_ms())
        self._end_session(session_id)
        self._deliver()

    def expire_sessions(self) -> list[int]:
        """End the sessions whose timeout has passed since their last request; return their ids."""
        overdue = self._sessions.overdue(self._clock.monotonic_ms())
        for session_id in overdue:
            on_expired = self._end_session(session_id)
            if on_expired is not None:
                on_expired()
        self._deliver()
        return overdue

    def next_expiry_ms(self) -> int | None:
        """Return when to call `expire_sessions` next, on the monotonic clock.

        None without sessions.
        """
        return self._sessions.next_deadline_ms()

    # -- reads ---------------------------------------------------------------------------------

    def get(self, session_id: int, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        self._enter(session_id, path)
        return self._tree.data(path), self._tree.stat(path)

    def acl(self, session_id: int, path: str) -> tuple[tuple[NodeAclEntry, ...], Stat]:
        """Return a node's ACL and its stat; raises NoNode."""
        self._enter(session_id, path)
        return self._tree.acl(path), self._tree.stat(path)

    def check_permitted(
        self, path: str, permission: Permission, identities: Identities | None
    ) -> None:
        """Raise NoAuth unless a node's ACL grants one of the permissions; NoNode if it is missing.

        With None for `identities` every permission is granted.
        """
        if not permits(self._tree.acl(path), permission, identities):
            raise NoAuth(path)

    def may_receive_event(self, path: str, identities: Identities | None) -> bool:
        """Return True if a client may read a changed node; for a removed one, its closest parent.

        Only such clients get the event of the change.
        """
        while path != ROOT and not self._tree.exists(path):
            path = parent_of(path)
        return permits(self._tree.acl(path), Permission.READ, identities)

    def exists(self, session_id: int, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        self._enter(session_id, path)
        return self._tree.stat(path) if self._tree.exists(path) else None

    def children(self, session_id: int, path: str) -> tuple[list[str], Stat]:
        """Return the sorted names of a node's children and its stat; raises NoNode."""
        self._enter(session_id, path)
        return self._tree.children(path), self._tree.stat(path)

    def watch(self, session_id: int, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch of a session; for children the node must exist (NoNode)."""
        self._enter(session_id, path)
        if kind is WatchKind.CHILDREN and not self._tree.exists(path):
            raise NoNode(path)
        self._watches.add(session_id, path, kind, watcher)

    def watch_persistently(
        self, session_id: int, path: str, watcher: Watcher, *, is_recursive: bool
    ) -> None:
        """Set a watch that stays after it fires, on one node or also on all its descendants."""
        self._enter(session_id, path)
        self._watches.add_persistent(session_id, path, watcher, is_recursive=is_recursive)

    def has_watch(self, session_id: int, path: str, kind: WatchKind | None) -> bool:
        """Return True if a session has a watch of a kind on a node; None for `kind` means any."""
        self._enter(session_id, path)
        return self._watches.has(session_id, path, kind)

    def remove_watches(self, session_id: int, path: str, kind: WatchKind | None) -> None:
        """Remove a session's watches of a kind on a node; None for `kind` means all."""
        self._enter(session_id, path)
        self._watches.remove(session_id, path, kind)

    def drop_watches(self, session_id: int) -> None:
        """Remove a session's watches: its connection is closed, though the session lives."""
        self._watches.drop_session(session_id)

    def ephemerals(self, session_id: int) -> list[str]:
        """Return the sorted paths of the nodes that a session owns."""
        self._check_usable()
        self.heartbeat(session_id)
        return self._tree.ephemerals(session_id)

    # -- writes --------------------------------------------------------------------------------

    def multi(
        self,
        session_id: int,
        operations: Sequence[Operation | SetAcl],
        identities: Identities | None = None,
    ) -> list[OperationResult]:
        """Apply all operations in one transaction, or none; return their results in order.

        The nodes' ACLs restrict a client with `identities`; None may do anything. Raises the error
        of the first refused operation, with its `operation_index`.
        """
        self._check_usable()
        self.heartbeat(session_id)
        if len(operations) > ZNODE_MULTI_OPERATIONS_MAX:
            raise ZnodeLimitExceeded(
                operations[0].path, "operations in a multi", ZNODE_MULTI_OPERATIONS_MAX
            )
        results = []
        self._tree.begin(self._zxid + 1, self._clock.wall_ms(), identities)
        try:
            for index, operation in enumerate(operations):
                results.append(self._apply(operation, session_id, index))
        except BaseException:
            self._tree.undo()
            raise
        self._commit({})
        self._deliver()
        return results

    def apply(
        self,
        session_id: int,
        operation: Operation | SetAcl,
        identities: Identities | None = None,
    ) -> OperationResult:
        """Apply one operation in its own transaction; raises its NodeError."""
        try:
            return self.multi(session_id, (operation,), identities)[0]
        except NodeError as error:
            error.operation_index = None
            raise

    def _apply(self, operation: Operation | SetAcl, session_id: int, index: int) -> OperationResult:
        """Apply an operation to the tree; a NodeError gets the operation's index in its request."""
        try:
            return self._tree.apply(operation, session_id)
        except NodeError as error:
            error.operation_index = index
            raise

    def _enter(self, session_id: int, path: str) -> None:
        """Check store, session and path, and restart the session's timeout, as every call does."""
        self._check_usable()
        self.heartbeat(session_id)
        check_path(path)

    def _check_usable(self) -> None:
        """Raise the error of a failed commit: after it the store refuses all calls."""
        if self._failure is not None:
            raise self._failure

    def _end_session(self, session_id: int) -> OnExpired | None:
        """Remove a session with its nodes and watches in one transaction.

        Returns its callback `on_expired`, which the caller calls if the timeout ended the session.
        """
        self._check_usable()
        self._tree.begin(self._zxid + 1, self._clock.wall_ms())
        for path in self._tree.ephemerals(session_id):
            self._tree.apply(Delete(path), session_id)
        # Its watches would only report nodes that it can no longer read.
        self._watches.drop_session(session_id)
        self._commit({session_id: None})
        return self._sessions.remove(session_id)

    def _commit(self, sessions: dict[int, int | None]) -> None:
        """Make the tree's open transaction durable and queue the events for its watchers.

        `sessions` are the sessions that begin (timeout in ms) or end (None) with it.
        """
        self._check_usable()
        changes = self._tree.finish()
        try:
            self._journal.commit(self._zxid + 1, changes.nodes, sessions)
        except ZnodeStoreFailed as error:
            # Whether the transaction is durable is unknown until a new start.
            self._failure = error
            raise
        self._zxid += 1
        for event in changes.events:
            for watcher in self._watches.fire(event):
                self._to_deliver.append((watcher, event))

    def _deliver(self) -> None:
        """Notify watchers in order, also of events that watchers themselves cause."""
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._to_deliver:
                watcher, event = self._to_deliver.popleft()
                watcher(event)
        finally:
            self._delivering = False
