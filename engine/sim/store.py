"""The metadata store on its own machine, and sessions with it over links.

```
client ── request over the link ──> StoreServer ── ZnodeStore ──> journal, which is looked at
       <── response, watch events in one order ──┘

CONNECTED ── silent for 2/3 of the timeout, or reset ──> SUSPENDED: what was asked fails,
    ^                                                    what is asked waits
    └── attached again: watches are set, RECONNECTED ──────────┤
                                        the session is gone ───┴──> EXPIRED
```

Watches are of a connection, and set again by the same rules as for a real ZooKeeper.

Source: the client that a broker has for that (`znode/kazoo_client.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from engine.errors import EngineError, ZnodeError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.sim.links import Channel, Wires
from engine.sim.machine import Machine, MachineTimers
from engine.sim.set_back import Snapshots, put_back
from engine.znode.errors import SessionExpired, ZnodeConnectionLost
from engine.znode.journal import Stored
from engine.znode.kept_watches import KeptWatches
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import (
    ANY_VERSION,
    Create,
    Delete,
    EventType,
    Operation,
    OperationResult,
    SessionEvent,
    SetData,
    Stat,
    Watcher,
    WatchEvent,
    WatchKind,
)
from engine.znode.paths import CONTROLLER
from engine.znode.store import ZnodeStore
from engine.znode.tree import Node

#: How often the store looks for silent sessions.
_EXPIRY_TICK_MS = 500
#: How long a client waits before it tries to connect once more.
_RECONNECT_MS = 300
#: How long it waits for the server's response to that.
_ATTACH_MS = 2_000
#: The session of an operator who deletes a node by hand lasts as long as any simulation.
_OPERATOR_MS = 1 << 30


class StoreObserver(Protocol):
    """Who is shown each transaction of the store."""

    def committed(
        self,
        zxid: int,
        nodes: Mapping[str, Node | None],
        sessions: Mapping[int, int | None],
        writer: str,
    ) -> None:
        """Take note of nodes and sessions as a transaction leaves them, and of who wrote."""
        ...


class WatchedJournal:
    """A journal that shows what is committed; see `engine.znode.journal.Journal`."""

    def __init__(self, observer: StoreObserver) -> None:
        self.writer = ""
        #: Told of all that each transaction leaves, where somebody keeps it.
        self.on_commit: Callable[[Stored], None] | None = None
        self._journal = MemoryJournal()
        self._observer = observer

    def load(self) -> Stored:
        """Return what the transactions left."""
        return self._journal.load()

    def commit(
        self, zxid: int, nodes: Mapping[str, Node | None], sessions: Mapping[int, int | None]
    ) -> None:
        """Take one transaction."""
        self._journal.commit(zxid, nodes, sessions)
        if self.on_commit is not None:
            self.on_commit(self._journal.load())
        self._observer.committed(zxid, nodes, sessions, self.writer)

    def keep_secret(self, secret: bytes) -> None:
        """Keep the secret of session passwords, which nobody is shown."""
        self._journal.keep_secret(secret)

    def put_back(self, stored: Stored) -> None:
        """Hold this in place of everything, for the next store on it."""
        self._journal = MemoryJournal(stored)

    def close(self) -> None:
        """Keep everything."""


class _Connection:
    """One connection of one client."""

    def __init__(self, links: Wires, client: str, server: str) -> None:
        self.to_server: Channel = links.channel(client, server)
        self.to_client: Channel = links.channel(server, client)


class StoreServer:
    """The store and who is connected to it."""

    def __init__(self, machine: Machine, links: Wires, journal: WatchedJournal) -> None:
        self.machine = machine
        self.links = links
        self._journal = journal
        #: The connection that each session is on.
        self._attached: dict[int, _Connection] = {}
        #: What tells the client of each connection that the server has closed it.
        self._closers: dict[_Connection, Callable[[], None]] = {}
        self._operator_session = 0
        self._snapshots = Snapshots()
        #: Sessions before whose next watch of `/controller` somebody deletes the node.
        self._deleted_before_watch_of: set[int] = set()
        self.start()

    def start(self) -> None:
        """Begin on what the journal holds; sessions have their full time from now on."""
        self._timers = self.machine.start()
        self.store = ZnodeStore(self._journal, self.machine.clock)
        self._tick()

    def stop(self) -> None:
        """End at once; what was committed is kept, and every connection breaks."""
        self.machine.kill()
        for connection in list(self._closers):
            self._close(connection)

    def keep_snapshots(self) -> None:
        """Keep what there was for a while, so that it can be put back."""
        self._snapshots.keep(self.machine.clock.monotonic_ms(), self._journal.load())
        self._journal.on_commit = lambda stored: self._snapshots.keep(
            self.machine.clock.monotonic_ms(), stored
        )

    def snapshot(self, age_ms: int) -> tuple[Stored, Stored] | None:
        """Return what would be put back if the data were set back so far, and what there is now.

        None where no snapshots are kept.
        """
        now = self._journal.load()
        snapshot = self._snapshots.as_of(self.machine.clock.monotonic_ms() - age_ms)
        return None if snapshot is None else (put_back(snapshot, now), now)

    def set_back(self, stored: Stored) -> None:
        """End at once, and hold this from the next start on; every connection breaks."""
        self.stop()
        self._attached.clear()
        self._closers.clear()
        self._journal.put_back(stored)
        self._snapshots = Snapshots()
        self._snapshots.keep(self.machine.clock.monotonic_ms(), stored)

    @property
    def life(self) -> int:
        """Return the number of the server's life."""
        return self._timers.life

    def _tick(self) -> None:
        self._journal.writer = "store"
        for session_id in self.store.expire_sessions():
            self._forget(session_id)
        self._timers.call_at(self.machine.clock.monotonic_ms() + _EXPIRY_TICK_MS, self._tick)

    def expire(self, session_id: int) -> None:
        """End a session as if it had been silent for its timeout."""
        self._journal.writer = "store"
        if session_id in self.store.session_ids():
            self.store.close_session(session_id)
            self._forget(session_id)

    def delete_controller(self) -> None:
        """Delete `/controller`, if it is there, as an operator does."""
        self._journal.writer = "operator"
        if self._operator_session not in self.store.session_ids():
            self._operator_session = self.store.open_session(_OPERATOR_MS)
        if self.store.exists(self._operator_session, CONTROLLER) is not None:
            self.store.apply(self._operator_session, Delete(CONTROLLER))

    def _forget(self, session_id: int) -> None:
        connection = self._attached.pop(session_id, None)
        if connection is not None:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        on_closed = self._closers.pop(connection, None)
        if on_closed is not None:
            connection.to_client.send(on_closed)

    def attach(
        self,
        session_id: int,
        timeout_ms: int,
        connection: _Connection,
        on_closed: Callable[[], None],
    ) -> int:
        """Begin a session (0) or go on with one over a new connection; returns its id.

        Watches are of a connection, as a ZooKeeper's: those of an earlier one are gone.
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
        """Delete `/controller` as soon as a session sets its next watch of it."""
        self._deleted_before_watch_of.add(session_id)

    def connection_of(self, session_id: int) -> _Connection | None:
        """Return the connection that a session is on."""
        return self._attached.get(session_id)

    def is_current(self, session_id: int, connection: _Connection) -> bool:
        """Return whether a session is connected by this connection."""
        return self.connection_of(session_id) is connection

    def run(self, writer: str, work: Callable[[ZnodeStore], Any]) -> Any:
        """Do what a client asks; the errors are those of the store."""
        self._journal.writer = writer
        return work(self.store)

    def close_session(self, session_id: int) -> None:
        """End a session at its own wish."""
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
        """Set a watch whose event is sent by `to_client`; returns the zxid of the last change.

        None where there is no node; raises NoNode for children of no node.
        """
        if path == CONTROLLER and session_id in self._deleted_before_watch_of:
            self._deleted_before_watch_of.remove(session_id)
            self.delete_controller()

        def fired(event: WatchEvent) -> None:
            to_client(lambda: on_event(event.type))

        self.store.watch(session_id, path, kind, fired)
        if kind is WatchKind.CHILDREN:
            return self.store.children(session_id, path)[1].pzxid
        stat = self.store.exists(session_id, path)
        return None if stat is None else stat.mzxid


def _ignore(event: SessionEvent) -> None:
    """Stand for a listener where nobody listens."""


class SimulatedZnodeClient:
    """A session of one life of a process; see `engine.znode.client` for the rules."""

    def __init__(self, timers: MachineTimers, server: StoreServer, timeout_ms: int) -> None:
        self._timers = timers
        self._machine = timers.machine
        self._server = server
        self._timeout_ms = timeout_ms
        self._session_id = 0
        self._has_session = False
        self._connection: _Connection | None = None
        self._pending: dict[int, Promise[Any]] = {}
        self._unsent: list[Callable[[], None]] = []
        self._number = 0
        self._heard_ms = 0
        self._cancel: Callable[[], None] = lambda: None
        self._connecting: Promise[None] | None = None
        self._attaching: _Connection | None = None
        self._watches = KeptWatches(self._arm)
        #: The node whose next watch is lost with its connection, and set again too late.
        self.loses_watch_of: str | None = None
        #: Told of each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore

    @property
    def session_id(self) -> int:
        """The session, 0 before the first."""
        return self._session_id

    @property
    def is_connected(self) -> bool:
        """Return whether requests are sent at once."""
        return self._connection is not None

    # -- the session ---------------------------------------------------------------------------

    async def connect(self) -> None:
        """Begin a session; raises ConnectionLost if the store does not answer in time."""
        if self._has_session:
            return
        self._session_id = 0
        self._connecting = connecting = Promise[None]()
        due_ms = self._now_ms + self._timeout_ms
        cancel = self._timers.call_at(due_ms, self._give_up)
        self._attach()
        try:
            await connecting
        finally:
            cancel()
        self.on_session(SessionEvent.CONNECTED)

    def _give_up(self) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            self._drop_connection()
            self._cancel()
            connecting.fail(ZnodeConnectionLost(f"nobody within {self._timeout_ms} ms"))

    @property
    def _now_ms(self) -> int:
        return self._timers.clock.monotonic_ms()

    def _attach(self) -> None:
        """Ask for a session over a new connection; ask again if there is no response in time."""
        server, machine = self._server, self._machine
        connection = _Connection(server.links, machine.name, server.machine.name)
        session_id, timeout_ms, life = self._session_id, self._timeout_ms, self._timers.life
        self._attaching = connection
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + _ATTACH_MS, self._attach)

        def respond(work: Callable[[], None]) -> None:
            connection.to_client.send(lambda: machine.enter(life, work))

        def on_closed() -> None:
            machine.enter(life, lambda: self._closed(connection))

        def at_server() -> None:
            def run() -> None:
                try:
                    given = server.run(
                        machine.name,
                        lambda _: server.attach(session_id, timeout_ms, connection, on_closed),
                    )
                except SessionExpired:
                    respond(lambda: self._attached(connection, None))
                    return
                respond(lambda: self._attached(connection, given))

            server.machine.enter(server.life, run)

        connection.to_server.send(at_server)

    def _attached(self, connection: _Connection, session_id: int | None) -> None:
        if connection is not self._attaching or self._connection is not None:
            return
        self._cancel()
        if session_id is None:
            self._expired()
            return
        self._connection = connection
        self._session_id = session_id
        self._heard_ms = self._now_ms
        self._ping_later()
        connecting, self._connecting = self._connecting, None
        is_new = not self._has_session
        self._has_session = True
        if is_new:
            if connecting is not None:
                connecting.keep(None)
            return
        drive(self._reconnected())

    async def _reconnected(self) -> None:
        setting = drive(self._watches.reconnected())
        unsent, self._unsent = self._unsent, []
        for send in unsent:
            send()
        with suppress(SessionExpired):
            if await setting:
                self.on_session(SessionEvent.RECONNECTED)

    def _ping_later(self) -> None:
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + self._timeout_ms // 3, self._ping)

    def _ping(self) -> None:
        if self._now_ms - self._heard_ms >= self._timeout_ms * 2 // 3:
            self._disconnected()
            return
        session_id = self._session_id
        self._ask(lambda store: store.heartbeat(session_id))
        self._ping_later()

    def _closed(self, connection: _Connection) -> None:
        if connection is self._connection:
            self._disconnected()

    def die(self) -> None:
        """End with the process: nothing is sent or told any more."""
        self._has_session = False
        self._connection = None

    def reset(self) -> None:
        """Lose the connection, as when the network breaks it."""
        if self._connection is not None:
            self._disconnected()

    def _drop_connection(self) -> None:
        self._connection = None

    def _disconnected(self) -> None:
        self._drop_connection()
        pending, self._pending = self._pending, {}
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + _RECONNECT_MS, self._attach)
        for promise in pending.values():
            promise.fail(ZnodeConnectionLost("the connection was lost"))
        self._watches.connection_lost()
        self.on_session(SessionEvent.SUSPENDED)

    def _expired(self) -> None:
        self._has_session = False
        self._drop_connection()
        self._cancel()
        pending, self._pending = self._pending, {}
        unsent, self._unsent = self._unsent, []
        for promise in pending.values():
            promise.fail(SessionExpired(self._session_id))
        for send in unsent:
            send()
        self._watches.end()
        self.on_session(SessionEvent.EXPIRED)

    async def close(self) -> None:
        """End the session and what it owns; closing twice is allowed."""
        if not self._has_session:
            self._cancel()
            return
        self._has_session = False
        server, session_id = self._server, self._session_id
        connection = self._connection
        self._cancel()
        self._drop_connection()
        pending, self._pending = self._pending, {}
        for promise in pending.values():
            promise.fail(SessionExpired(session_id))
        if connection is not None:
            writer = self._machine.name

            def at_server() -> None:
                def run() -> None:
                    if session_id in server.store.session_ids():
                        server.run(writer, lambda _: server.close_session(session_id))

                server.machine.enter(server.life, run)

            connection.to_server.send(at_server)

    # -- requests ------------------------------------------------------------------------------

    def _ask(self, work: Callable[[ZnodeStore], Any]) -> Promise[Any]:
        promise: Promise[Any] = Promise()
        if not self._has_session:
            return Promise.failed(SessionExpired(self._session_id))

        def send() -> None:
            if not self._has_session:
                promise.fail(SessionExpired(self._session_id))
            elif self._connection is None:
                self._unsent.append(send)
            else:
                self._send(work, promise)

        send()
        return promise

    def _send(self, work: Callable[[ZnodeStore], Any], promise: Promise[Any]) -> None:
        connection = self._connection
        assert connection is not None
        self._number += 1
        number = self._number
        self._pending[number] = promise
        server, machine, life = self._server, self._machine, self._timers.life
        session_id, server_life = self._session_id, server.life

        def respond(value: Any, error: EngineError | None) -> None:
            connection.to_client.send(
                lambda: machine.enter(life, lambda: self._settle(number, value, error))
            )

        def run() -> None:
            # A request over a connection that its session has left is not done.
            if session_id in server.store.session_ids() and not server.is_current(
                session_id, connection
            ):
                return
            try:
                value = server.run(machine.name, work)
            except ZnodeError as error:
                respond(None, error)
                return
            respond(value, None)

        connection.to_server.send(lambda: server.machine.enter(server_life, run))

    def _settle(self, number: int, value: Any, error: EngineError | None) -> None:
        promise = self._pending.pop(number, None)
        if promise is None:
            return
        self._heard_ms = self._now_ms
        if error is None:
            promise.keep(value)
            return
        promise.fail(error)
        if isinstance(error, SessionExpired) and self._has_session:
            self._expired()

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path, with its ten digits if sequential."""
        operation = Create(path, data, ephemeral, sequential)
        session_id = self._session_id
        return str(await self._ask(lambda store: store.apply(session_id, operation)))

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        session_id = self._session_id
        data, stat = await self._read(lambda store: store.get(session_id, path))
        return data, stat

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        session_id, operation = self._session_id, SetData(path, data, version)
        stat = await self._ask(lambda store: store.apply(session_id, operation))
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version."""
        session_id, operation = self._session_id, Delete(path, version)
        await self._ask(lambda store: store.apply(session_id, operation))

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it is not there."""
        session_id = self._session_id
        stat: Stat | None = await self._read(lambda store: store.exists(session_id, path))
        return stat

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        session_id = self._session_id
        names, _ = await self._read(lambda store: store.children(session_id, path))
        return list(names)

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations at once or none; the error tells which one (`operation_index`)."""
        session_id, wanted = self._session_id, tuple(operations)
        results = await self._ask(lambda store: store.multi(session_id, wanted))
        return list(results)

    async def _read(self, work: Callable[[ZnodeStore], Any]) -> Any:
        return await self._watches.read(lambda: self._ask(work))

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must be there (NoNode)."""
        await self._watches.watch(path, kind, watcher)

    async def _arm(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> int | None:
        session_id, server, machine = self._session_id, self._server, self._machine
        life = self._timers.life

        def to_client(work: Callable[[], None]) -> None:
            connection = server.connection_of(session_id)

            def arrive() -> None:
                if connection is self._connection:
                    work()

            if connection is not None:
                connection.to_client.send(lambda: machine.enter(life, arrive))

        request = self._ask(lambda _: server.watch(session_id, path, kind, on_event, to_client))
        if path == self.loses_watch_of and self._connection is not None:
            self.loses_watch_of = None
            self._connection.to_server.send(lambda: server.delete_before_watch_of(session_id))
            self.reset()
        zxid: int | None = await request
        return zxid
