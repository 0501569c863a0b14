"""Sessions with the metadata store over links.

```
CONNECTED ── no response for 2/3 of the time-out, or reset ──> SUSPENDED: requests in flight fail,
    ^                                                          new requests wait
    └── attached again: watches are set, RECONNECTED ──────────┤
                                     the session has expired ──┴──> EXPIRED
```

Watches belong to a connection, and are set again by the same rules as with a real ZooKeeper.

Source: the client of a real ZooKeeper (`znode/kazoo_client.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from engine.errors import EngineError, ZnodeError
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.sim.machine import MachineTimers
from engine.sim.store import StoreConnection, StoreServer
from engine.znode.errors import SessionExpired, ZnodeConnectionLost
from engine.znode.kept_watches import KeptWatches
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
    WatchKind,
)
from engine.znode.store import ZnodeStore

T = TypeVar("T")

#: Back-off before the next connection attempt.
_RECONNECT_MS = 300
#: Time-out of a connection attempt.
_ATTACH_MS = 2_000


def _ignore(event: SessionEvent) -> None:
    """Do nothing: the default session listener."""


class SimulatedZnodeClient:
    """A session of one life of a process; see `engine.znode.client` for the rules."""

    def __init__(self, timers: MachineTimers, server: StoreServer, timeout_ms: int) -> None:
        """Create a client that is not connected; `timers` are those of one life of the process."""
        self._timers = timers
        self._machine = timers.machine
        self._server = server
        self._timeout_ms = timeout_ms
        self._session_id = 0
        #: Whether the session exists and has not expired.
        self._has_session = False
        #: The present connection of the session; None while there is none.
        self._connection: StoreConnection | None = None
        #: Requests in flight, by number; and requests that wait for a connection.
        self._pending: dict[int, Promise[Any]] = {}
        self._unsent: list[Callable[[], None]] = []
        self._number = 0
        #: Time of the server's last response.
        self._heard_ms = 0
        #: Cancels the timer of the next connection attempt or heartbeat.
        self._cancel: Callable[[], None] = lambda: None
        #: Promise of a running `connect`; None otherwise.
        self._connecting: Promise[None] | None = None
        #: The connection that is being made; a later one replaces it.
        self._attaching: StoreConnection | None = None
        self._watches = KeptWatches(self._request_watch)
        #: A fault: the next watch of this znode is lost with its connection, and set again too
        #: late.
        self.loses_watch_of: str | None = None
        #: Called at each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore

    @property
    def session_id(self) -> int:
        """Return the session id; 0 before the first session."""
        return self._session_id

    @property
    def is_connected(self) -> bool:
        """Return True if the session has a connection: requests are sent at once."""
        return self._connection is not None

    # -- the session ---------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open a session, unless there is one; raises ConnectionLost after the session time-out."""
        if self._has_session:
            return
        self._session_id = 0
        self._connecting = connecting = Promise[None]()
        due_ms = self._now_ms + self._timeout_ms
        cancel = self._timers.call_at(due_ms, self._fail_connect)
        self._attach()
        try:
            await connecting
        finally:
            cancel()
        self.on_session(SessionEvent.CONNECTED)

    def _fail_connect(self) -> None:
        """Fail `connect`, because no server responded within the session time-out."""
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            self._drop_connection()
            self._cancel()
            connecting.fail(ZnodeConnectionLost(f"nobody within {self._timeout_ms} ms"))

    @property
    def _now_ms(self) -> int:
        """Return the monotonic time of the client's machine."""
        return self._timers.clock.monotonic_ms()

    def _attach(self) -> None:
        """Request the session over a new connection; retry if there is no response in time."""
        server, machine = self._server, self._machine
        connection = StoreConnection(server.links, machine.name, server.machine.name)
        session_id, timeout_ms, life = self._session_id, self._timeout_ms, self._timers.life
        self._attaching = connection
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + _ATTACH_MS, self._attach)

        def respond(work: Callable[[], None]) -> None:
            """Run `work` at the client, after the delay of the link."""
            connection.to_client.send(lambda: machine.enter(life, work))

        def on_closed() -> None:
            """Handle the server's close at the client."""
            machine.enter(life, lambda: self._on_closed(connection))

        def at_server() -> None:
            """Attach the session at the server; respond with its id, None if it has expired."""

            def run() -> None:
                """Attach the session, unless it has expired, and respond."""
                try:
                    given = server.run(
                        machine.name,
                        lambda _: server.attach(session_id, timeout_ms, connection, on_closed),
                    )
                except SessionExpired:
                    respond(lambda: self._on_attached(connection, None))
                    return
                respond(lambda: self._on_attached(connection, given))

            server.machine.enter(server.life, run)

        connection.to_server.send(at_server)

    def _on_attached(self, connection: StoreConnection, session_id: int | None) -> None:
        """Use the new connection: start heartbeats, and restore watches if the session existed.

        A `session_id` of None means that the session has expired.
        """
        if connection is not self._attaching or self._connection is not None:
            return
        self._cancel()
        if session_id is None:
            self._end_session()
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
        drive(self._restore_session())

    async def _restore_session(self) -> None:
        """Set the watches again, send the requests that waited, and report RECONNECTED."""
        setting = drive(self._watches.set_all_again())
        unsent, self._unsent = self._unsent, []
        for send in unsent:
            send()
        with suppress(SessionExpired):
            if await setting:
                self.on_session(SessionEvent.RECONNECTED)

    def _ping_later(self) -> None:
        """Schedule the next heartbeat after a third of the session time-out."""
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + self._timeout_ms // 3, self._ping)

    def _ping(self) -> None:
        """Send a heartbeat; disconnect after 2/3 of the time-out without a response."""
        if self._now_ms - self._heard_ms >= self._timeout_ms * 2 // 3:
            self._disconnect()
            return
        session_id = self._session_id
        self._request(lambda store: store.heartbeat(session_id))
        self._ping_later()

    def _on_closed(self, connection: StoreConnection) -> None:
        """Disconnect if the server closed the session's present connection."""
        if connection is self._connection:
            self._disconnect()

    def die(self) -> None:
        """End with the process: nothing more is sent or reported."""
        self._has_session = False
        self._connection = None

    def reset(self) -> None:
        """Lose the present connection, as after a network reset."""
        if self._connection is not None:
            self._disconnect()

    def _drop_connection(self) -> None:
        """Forget the connection; later responses on it are not delivered."""
        self._connection = None

    def _disconnect(self) -> None:
        """Fail the requests in flight, report SUSPENDED, and schedule a new connection."""
        self._drop_connection()
        pending, self._pending = self._pending, {}
        self._cancel()
        self._cancel = self._timers.call_at(self._now_ms + _RECONNECT_MS, self._attach)
        for promise in pending.values():
            promise.fail(ZnodeConnectionLost("the connection was lost"))
        self._watches.on_connection_loss()
        self.on_session(SessionEvent.SUSPENDED)

    def _end_session(self) -> None:
        """End the session: fail all requests, drop watches, report EXPIRED."""
        self._has_session = False
        self._drop_connection()
        self._cancel()
        pending, self._pending = self._pending, {}
        unsent, self._unsent = self._unsent, []
        for promise in pending.values():
            promise.fail(SessionExpired(self._session_id))
        # Without a session, `send` sends nothing: it fails its request with SessionExpired.
        for send in unsent:
            send()
        self._watches.end()
        self.on_session(SessionEvent.EXPIRED)

    async def close(self) -> None:
        """End the session, which deletes its ephemeral nodes; a second call does nothing."""
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
                """Close the session at the server, unless it has expired."""

                def run() -> None:
                    """Close the session if it has not expired."""
                    if session_id in server.store.session_ids():
                        server.run(writer, lambda _: server.close_session(session_id))

                server.machine.enter(server.life, run)

            connection.to_server.send(at_server)

    # -- requests ------------------------------------------------------------------------------

    def _request(self, work: Callable[[ZnodeStore], T]) -> Promise[T]:
        """Run `work` at the store in this session; return a promise of its result.

        Without a connection the request waits for the next one; without a session it fails with
        SessionExpired.
        """
        promise: Promise[T] = Promise()
        if not self._has_session:
            return Promise.failed(SessionExpired(self._session_id))

        def send() -> None:
            """Send the request; queue it without a connection, fail it without a session."""
            if not self._has_session:
                promise.fail(SessionExpired(self._session_id))
            elif self._connection is None:
                self._unsent.append(send)
            else:
                self._send(work, promise)

        send()
        return promise

    def _send(self, work: Callable[[ZnodeStore], T], promise: Promise[T]) -> None:
        """Send a request over the present connection; its response completes the promise.

        The server ignores the request if the session has moved to another connection.
        """
        connection = self._connection
        assert connection is not None
        self._number += 1
        number = self._number
        self._pending[number] = promise
        server, machine, life = self._server, self._machine, self._timers.life
        session_id, server_life = self._session_id, server.life

        def respond(value: object, error: EngineError | None) -> None:
            """Complete the request at the client, after the delay of the link."""
            connection.to_client.send(
                lambda: machine.enter(life, lambda: self._settle(number, value, error))
            )

        def run() -> None:
            """Run the request at the server and respond, unless the session has moved."""
            # A request over a former connection of the session is ignored.
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

    def _settle(self, number: int, value: object, error: EngineError | None) -> None:
        """Complete the promise of a request, unless the connection was lost before."""
        promise = self._pending.pop(number, None)
        if promise is None:
            return
        self._heard_ms = self._now_ms
        if error is None:
            promise.keep(value)
            return
        promise.fail(error)
        if isinstance(error, SessionExpired) and self._has_session:
            self._end_session()

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path; a sequential node's path ends in ten digits."""
        operation = Create(path, data, ephemeral, sequential)
        session_id = self._session_id
        return str(await self._request(lambda store: store.apply(session_id, operation)))

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        session_id = self._session_id
        data, stat = await self._read(lambda store: store.get(session_id, path))
        return data, stat

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if its version matches; raises NoNode, BadVersion."""
        session_id, operation = self._session_id, SetData(path, data, version)
        stat = await self._request(lambda store: store.apply(session_id, operation))
        assert isinstance(stat, Stat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node without children if its version matches.

        Raises NoNode, NotEmpty, BadVersion.
        """
        session_id, operation = self._session_id, Delete(path, version)
        await self._request(lambda store: store.apply(session_id, operation))

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat; None if it does not exist."""
        session_id = self._session_id
        stat: Stat | None = await self._read(lambda store: store.exists(session_id, path))
        return stat

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        session_id = self._session_id
        names, _ = await self._read(lambda store: store.children(session_id, path))
        return list(names)

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply all operations or none; the error has the `operation_index` of the failed one."""
        session_id, wanted = self._session_id, tuple(operations)
        results = await self._request(lambda store: store.multi(session_id, wanted))
        return list(results)

    async def _read(self, work: Callable[[ZnodeStore], T]) -> T:
        """Return the result of a read, in order with watch events.

        Fails with ZnodeConnectionLost if the connection is lost.
        """
        return await self._watches.read(lambda: self._request(work))

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; raises NoNode for a children watch of a missing node."""
        await self._watches.watch(path, kind, watcher)

    async def _request_watch(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> int | None:
        """Set a watch at the server; return the zxid of the node's state when it was set.

        Events over a former connection of the session are lost; the injected fault `loses_watch_of`
        causes that.
        """
        session_id, server, machine = self._session_id, self._server, self._machine
        life = self._timers.life

        def to_client(work: Callable[[], None]) -> None:
            """Send an event to the client, if the session has a connection."""
            connection = server.connection_of(session_id)

            def arrive() -> None:
                """Deliver the event, if the client still uses that connection."""
                if connection is self._connection:
                    work()

            if connection is not None:
                connection.to_client.send(lambda: machine.enter(life, arrive))

        request = self._request(lambda _: server.watch(session_id, path, kind, on_event, to_client))
        if path == self.loses_watch_of and self._connection is not None:
            self.loses_watch_of = None
            self._connection.to_server.send(lambda: server.delete_before_watch_of(session_id))
            self.reset()
        zxid: int | None = await request
        return zxid
