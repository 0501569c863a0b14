"""The metadata store on its own machine.

```
client ── request over the link ──> StoreServer ── ZnodeStore ──> journal, observed by the rules
       <── responses and watch events, in order ─┘
```

Sessions expire without heartbeats; watches belong to a connection. Clients: `store_client.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from engine.sim.machine import Machine
from engine.sim.machine_links import Channel, MachineLinks
from engine.sim.store_rollback import Snapshots, put_back
from engine.znode.journal import Stored
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import (
    Delete,
    EventType,
    WatchEvent,
    WatchKind,
)
from engine.znode.paths import BROKER_CONFIGS, CLIENT_CONFIGS, CONTROLLER, config_path
from engine.znode.store import ZnodeStore
from engine.znode.tree import Node
from engine.znode.values import decode_config

T = TypeVar("T")

#: Interval of the checks for expired sessions.
_EXPIRY_TICK_MS = 500
#: Paths of the configs that limit clients and replication.
_LIMITS = (f"{config_path(CLIENT_CONFIGS)}/", f"{config_path(BROKER_CONFIGS)}/")
#: Time-out of the operator's session: longer than any simulation.
_OPERATOR_MS = 1 << 30


class StoreObserver(Protocol):
    """Receives each committed transaction of the store."""

    def on_transaction(
        self,
        zxid: int,
        nodes: Mapping[str, Node | None],
        sessions: Mapping[int, int | None],
        writer: str,
    ) -> None:
        """Check a transaction: the nodes and sessions that it changed, and its writer.

        A value of None means a deleted node, or an ended session.
        """
        ...


class WatchedJournal:
    """A journal that reports each commit; see `engine.znode.journal.Journal`."""

    def __init__(self, observer: StoreObserver) -> None:
        """Create an empty journal; `observer` receives each transaction."""
        #: Name of the machine whose request is executed.
        self.writer = ""
        #: Called with the whole content after each transaction, if not None.
        self.on_commit: Callable[[Stored], None] | None = None
        self._journal = MemoryJournal()
        self._observer = observer

    def load(self) -> Stored:
        """Return the content of the store after all transactions."""
        return self._journal.load()

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Write one transaction to the journal, and report it to the observer."""
        self._journal.commit(zxid, nodes, sessions)
        if self.on_commit is not None:
            self.on_commit(self._journal.load())
        self._observer.on_transaction(zxid, nodes, sessions, self.writer)

    def keep_secret(self, secret: bytes) -> None:
        """Store the secret of session passwords; it is not reported."""
        self._journal.keep_secret(secret)

    def put_back(self, stored: Stored) -> None:
        """Replace the content by an older one, for the next store that is opened on the journal."""
        self._journal = MemoryJournal(stored)

    def close(self) -> None:
        """Do nothing: the content is kept."""


class StoreConnection:
    """One connection of one client: a channel in each direction."""

    def __init__(self, links: MachineLinks, client: str, server: str) -> None:
        self.to_server: Channel = links.channel(client, server)
        self.to_client: Channel = links.channel(server, client)


class StoreServer:
    """The server of the metadata store, with its sessions."""

    def __init__(self, machine: Machine, links: MachineLinks, journal: WatchedJournal) -> None:
        """Create the server and start it on `journal`."""
        self.machine = machine
        self.links = links
        self._journal = journal
        #: The present connection of each session.
        self._attached: dict[int, StoreConnection] = {}
        #: Callbacks that notify the client of a connection that the server has closed it.
        self._closers: dict[StoreConnection, Callable[[], None]] = {}
        #: The session of the operator's changes, renewed when it has expired.
        self._operator_session = 0
        self._snapshots = Snapshots()
        #: Sessions whose next watch of `/controller` is preceded by a deletion of that znode.
        self._deleted_before_watch_of: set[int] = set()
        self.start()

    def start(self) -> None:
        """Start with the journal's content; each session gets its full time-out from now on."""
        self._timers = self.machine.start()
        self.store = ZnodeStore(self._journal, self.machine.clock)
        self._tick()

    def stop(self) -> None:
        """Kill the store's process: its connections end, committed writes are kept."""
        self.machine.kill()
        for connection in list(self._closers):
            self._close(connection)

    def keep_snapshots(self) -> None:
        """Keep recent states of the store, so that a fault can restore one."""
        self._snapshots.keep(self.machine.clock.monotonic_ms(), self._journal.load())
        self._journal.on_commit = lambda stored: self._snapshots.keep(
            self.machine.clock.monotonic_ms(), stored
        )

    def preview_rollback(self, age_ms: int) -> tuple[Stored, Stored] | None:
        """Return the state that a rollback by `age_ms` would restore, and the present state.

        What is restored is the snapshot of then, but for producer ids and leader epochs, which are
        never used twice. None if no snapshots are kept.
        """
        now = self._journal.load()
        snapshot = self._snapshots.as_of(self.machine.clock.monotonic_ms() - age_ms)
        return None if snapshot is None else (put_back(snapshot, now), now)

    def roll_back(self, stored: Stored) -> None:
        """Kill the store's process and replace its content; the next start serves `stored`."""
        self.stop()
        self._attached.clear()
        self._closers.clear()
        self._journal.put_back(stored)
        self._snapshots = Snapshots()
        self._snapshots.keep(self.machine.clock.monotonic_ms(), stored)

    @property
    def has_limits(self) -> bool:
        """Return True if quotas of clients or throttles of brokers are stored."""
        return any(
            path.startswith(_LIMITS) and decode_config(node.data, path)
            for path, node in self._journal.load().nodes
        )

    @property
    def life(self) -> int:
        """Return the life number of the store's process."""
        return self._timers.life

    def _tick(self) -> None:
        """Expire the sessions that are due, and schedule the next check."""
        self._journal.writer = "store"
        for session_id in self.store.expire_sessions():
            self._forget(session_id)
        self._timers.call_at(self.machine.clock.monotonic_ms() + _EXPIRY_TICK_MS, self._tick)

    def expire(self, session_id: int) -> None:
        """End a session as if its time-out had elapsed."""
        self._journal.writer = "store"
        if session_id in self.store.session_ids():
            self.store.close_session(session_id)
            self._forget(session_id)

    def delete_controller(self) -> None:
        """Delete `/controller`, if it exists, as an operator would."""
        self._journal.writer = "operator"
        if self._operator_session not in self.store.session_ids():
            self._operator_session = self.store.open_session(_OPERATOR_MS)
        if self.store.exists(self._operator_session, CONTROLLER) is not None:
            self.store.apply(self._operator_session, Delete(CONTROLLER))

    def _forget(self, session_id: int) -> None:
        """Close the connection of a session that has ended, if there is one."""
        connection = self._attached.pop(session_id, None)
        if connection is not None:
            self._close(connection)

    def _close(self, connection: StoreConnection) -> None:
        """Notify a connection's client, over the link, that the server has closed it."""
        on_closed = self._closers.pop(connection, None)
        if on_closed is not None:
            connection.to_client.send(on_closed)

    def attach(
        self,
        session_id: int,
        timeout_ms: int,
        connection: StoreConnection,
        on_closed: Callable[[], None],
    ) -> int:
        """Open a session (id 0) or resume one over a new connection; return its id.

        Watches belong to a connection, as in ZooKeeper: those of the earlier one are dropped.
        """
        if session_id == 0:
            session_id = self.store.open_session(timeout_ms)
        else:
            self.store.resume_session(session_id)
            self.store.drop_watches(session_id)
        self._attached[session_id] = connection
        self._closers[connection] = on_closed
        return session_id

    def delete_before_watch_of(self, session_id: int) -> None:
        """Delete `/controller` directly before a session's next watch of it is set."""
        self._deleted_before_watch_of.add(session_id)

    def connection_of(self, session_id: int) -> StoreConnection | None:
        """Return the present connection of a session; None if it has none."""
        return self._attached.get(session_id)

    def is_current(self, session_id: int, connection: StoreConnection) -> bool:
        """Return True if a session uses this connection."""
        return self.connection_of(session_id) is connection

    def run(self, writer: str, work: Callable[[ZnodeStore], T]) -> T:
        """Execute a client's request on the store; raises the store's errors."""
        self._journal.writer = writer
        return work(self.store)

    def close_session(self, session_id: int) -> None:
        """End a session at its client's request."""
        self.store.close_session(session_id)
        self._attached.pop(session_id, None)

    def watch(
        self,
        session_id: int,
        path: str,
        kind: WatchKind,
        on_event: Callable[[EventType], None],
        to_client: Callable[[Callable[[], None]], None],
    ) -> int | None:
        """Set a watch whose event is sent by `to_client`; return the zxid of the last change.

        None if the node does not exist; raises NoNode for a children watch of a missing node.
        """
        if path == CONTROLLER and session_id in self._deleted_before_watch_of:
            self._deleted_before_watch_of.remove(session_id)
            self.delete_controller()

        def fired(event: WatchEvent) -> None:
            """Send the event to the client."""
            to_client(lambda: on_event(event.type))

        self.store.watch(session_id, path, kind, fired)
        if kind is WatchKind.CHILDREN:
            return self.store.children(session_id, path)[1].pzxid
        stat = self.store.exists(session_id, path)
        return None if stat is None else stat.mzxid
