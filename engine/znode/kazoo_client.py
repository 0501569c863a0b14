"""A client of a real ZooKeeper, by the kazoo library; see `client.py` for the rules.

```
engine's thread                            kazoo's thread
request ── queue, wake ──────────────────> socket
promise kept <── call_from_thread ──────── answer         one queue for answers, events and
watcher, on_session <── call_from_thread ─ event, state   states: their order is ZooKeeper's (Z3)
```

Kazoo forgets watches when a connection is lost. They are kept here, and set again before
RECONNECTED is told; what happened to a node meanwhile is seen by its zxid and told as an event:

| set on | told when it comes back |
|---|---|
| a node that was there | DELETED if it is gone, DATA_CHANGED if its mzxid differs |
| a node that was not | CREATED if it is there |
| children | DELETED if the node is gone, CHILDREN_CHANGED if its pzxid differs |

After EXPIRED nothing of the session is left; `connect` makes a new client.

Source: kafka.zookeeper.ZooKeeperClient.
Differs: Kafka's client has ZooKeeper's own library set watches again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import CheckVersion
from kazoo.protocol.serialization import Create as CreateMessage
from kazoo.protocol.serialization import Delete as DeleteMessage
from kazoo.protocol.serialization import SetData as SetDataMessage
from kazoo.protocol.states import KazooState, WatchedEvent
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from engine.errors import ConfigError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import ZNODE_DATA_BYTES_MAX, ZOOKEEPER_RETRY_DELAY_MAX_MS
from engine.znode.errors import (
    InvalidZnodePath,
    NoNode,
    SessionExpired,
    ZnodeConnectionLost,
    ZnodeLimitExceeded,
)
from engine.znode.kazoo_errors import engine_error, refusal_of_multi
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
from engine.znode.names import check_path

_log = logging.getLogger("kafka.zookeeper.ZooKeeperClient")
_EVENTS = {
    "CREATED": EventType.CREATED,
    "DELETED": EventType.DELETED,
    "CHANGED": EventType.DATA_CHANGED,
    "CHILD": EventType.CHILDREN_CHANGED,
}


class _Inline:
    """Runs at once what kazoo would hand to one of two more threads, and so keep no order."""

    def put(self, work: Callable[[], None]) -> None:
        work()


class InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Kazoo's threading handler with one thread, that of the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.callback_queue = self.completion_queue = _Inline()

    def start(self) -> None:
        """Begin; there are no workers."""
        self._running = True

    def stop(self) -> None:
        """End."""
        self._running = False


class _Armed:
    """A watch that is set, or will be again."""

    __slots__ = ("is_lost", "kind", "path", "seen_zxid", "watcher")

    def __init__(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        self.path = path
        self.kind = kind
        self.watcher = watcher
        #: The node's mzxid or pzxid when it was set, None for a node that was not there.
        self.seen_zxid: int | None = None
        self.is_lost = False

    @property
    def key(self) -> tuple[WatchKind, str, Watcher]:
        return self.kind, self.path, self.watcher


class ZookeeperAddress:
    """Where an ensemble is: `host:port,…`, and the node that is the root for us."""

    def __init__(self, connect: str) -> None:
        """Take a `zookeeper.connect`; raises ConfigError."""
        servers, separator, chroot = connect.partition("/")
        try:
            collect_hosts(servers)
            if chroot:
                check_path(f"{separator}{chroot.rstrip('/')}")
        except (ValueError, InvalidZnodePath) as error:
            raise ConfigError("zookeeper.connect", connect, str(error)) from error
        self.servers = servers
        self.chroot = "" if not chroot else f"{separator}{chroot.rstrip('/')}"

    def __str__(self) -> str:
        return f"{self.servers}{self.chroot}"


def _ignore(event: SessionEvent) -> None:
    """Stand for a listener where nobody listens."""


class KazooZnodeClient:
    """A session with a ZooKeeper ensemble."""

    def __init__(
        self,
        address: ZookeeperAddress,
        timers: Timers,
        clock: Clock,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
    ) -> None:
        self._address = address
        self._timers = timers
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._kazoo: KazooClient | None = None
        self._connecting: Promise[None] | None = None
        #: Clients of earlier sessions, while they close.
        self._closing: list[Promise[None]] = []
        self._session_id = 0
        self._armed: dict[tuple[WatchKind, str, Watcher], _Armed] = {}
        #: Told of each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore

    @property
    def session_id(self) -> int:
        """The session, 0 before the first."""
        return self._session_id

    # -- the session ---------------------------------------------------------------------------

    async def connect(self) -> None:
        """Begin a session; raises ConnectionLost if no server answers in time."""
        if self._kazoo is not None:
            return
        handler = InlineHandler()
        retry = KazooRetry(
            max_tries=-1,
            max_delay=ZOOKEEPER_RETRY_DELAY_MAX_MS / 1000,
            sleep_func=handler.sleep_func,
        )
        kazoo = KazooClient(
            self._address.servers,
            timeout=self._session_timeout_ms / 1000,
            handler=handler,
            connection_retry=retry,
            logger=_log,
        )
        kazoo.add_listener(lambda state: self._soon(partial(self._state_changed, kazoo, state)))
        self._kazoo = kazoo
        self._connecting = connecting = Promise[None]()
        due_ms = self._clock.monotonic_ms() + self._connection_timeout_ms
        cancel = self._timers.call_at(due_ms, partial(self._give_up, kazoo))
        kazoo.start_async()
        try:
            await connecting
            if self._address.chroot:
                await self._ask(lambda k: k.ensure_path_async(self._address.chroot), "/")
                kazoo.chroot = self._address.chroot
        except (ZnodeConnectionLost, SessionExpired):
            self._let_go()
            raise
        finally:
            cancel()
        self.on_session(SessionEvent.CONNECTED)

    def _give_up(self, kazoo: KazooClient) -> None:
        connecting = self._connecting
        if kazoo is self._kazoo and connecting is not None:
            self._connecting = None
            waited = f"no server of {self._address} within {self._connection_timeout_ms} ms"
            connecting.fail(ZnodeConnectionLost(waited))

    def _state_changed(self, kazoo: KazooClient, state: str) -> None:
        if kazoo is not self._kazoo:
            return
        if state == KazooState.CONNECTED:
            self._connected(kazoo)
        elif state == KazooState.SUSPENDED:
            self.on_session(SessionEvent.SUSPENDED)
        elif self._connecting is None:
            _log.warning("session 0x%x has expired", self._session_id)
            self._armed.clear()
            self._let_go()
            self.on_session(SessionEvent.EXPIRED)

    def _connected(self, kazoo: KazooClient) -> None:
        identity = kazoo.client_id
        connecting = self._connecting
        if connecting is not None:
            self._connecting = None
            self._session_id, _ = (0, b"") if identity is None else identity
            connecting.keep(None)
        else:
            drive(self._reconnected())

    async def close(self) -> None:
        """End the session and what it owns; closing twice is allowed."""
        self._armed.clear()
        self._let_go()
        for closing in list(self._closing):
            await closing

    def _let_go(self) -> None:
        """Begin to close kazoo's client, on a thread: it waits for the server's response."""
        kazoo, self._kazoo = self._kazoo, None
        if kazoo is None:
            return
        done = Promise[None]()
        self._closing.append(done)
        done.watch(lambda: self._closing.remove(done))

        def stop() -> None:
            try:
                kazoo.stop()
                kazoo.close()
            except (KazooException, OSError) as error:
                _log.warning("the session could not be closed and will expire: %s", error)
            self._soon(partial(done.keep, None))

        threading.Thread(target=stop, name="zookeeper-close", daemon=True).start()

    # -- requests ------------------------------------------------------------------------------

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        """Create a node and return its path, with its ten digits if sequential."""
        _check(Create(path, data, ephemeral, sequential))
        created = await self._ask(
            lambda k: k.create_async(path, data, ephemeral=ephemeral, sequence=sequential), path
        )
        return str(created)

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        check_path(path)
        data, stat = await self._ask(lambda k: k.get_async(path), path)
        return data, stat_of(stat)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        _check(SetData(path, data, version))
        stat = await self._ask(lambda k: k.set_async(path, data, version), path, version)
        return stat_of(stat)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version."""
        check_path(path)
        await self._ask(lambda k: k.delete_async(path, version), path, version)

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it is not there."""
        check_path(path)
        stat = await self._ask(lambda k: k.exists_async(path), path)
        return None if stat is None else stat_of(stat)

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        check_path(path)
        return sorted(await self._ask(lambda k: k.get_children_async(path), path))

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations at once or none; the error tells which one (`operation_index`)."""
        for operation in operations:
            _check(operation)

        def commit(kazoo: KazooClient) -> Any:
            transaction = kazoo.transaction()
            for operation in operations:
                transaction.operations.append(_message(kazoo.chroot or "", operation))
            return transaction.commit_async()

        results = await self._ask(commit, operations[0].path if operations else "/")
        error = refusal_of_multi(results, operations)
        if error is not None:
            raise error
        return [
            _result(operation, result)
            for operation, result in zip(operations, results, strict=True)
        ]

    async def _ask(
        self, send: Callable[[KazooClient], Any], path: str, version: int = ANY_VERSION
    ) -> Any:
        kazoo = self._kazoo
        if kazoo is None:
            raise SessionExpired(self._session_id)
        promise = Promise[Any]()
        session_id = self._session_id

        def settle(result: Any) -> None:
            # A request that kazoo could not queue is failed twice.
            if promise.is_kept:
                return
            if result.exception is None:
                promise.keep(result.value)
            else:
                promise.fail(engine_error(result.exception, path, version, session_id))

        send(kazoo).rawlink(lambda result: self._soon(partial(settle, result)))
        return await promise

    # -- watches -------------------------------------------------------------------------------

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must be there (NoNode)."""
        check_path(path)
        armed = _Armed(path, kind, watcher)
        if armed.key in self._armed:
            return
        # What kazoo calls is on its way as soon as the request is.
        armed.seen_zxid = await self._arm(armed)

    async def _arm(self, armed: _Armed) -> int | None:
        """Set a watch at the server and return what its node has been through."""
        self._armed[armed.key] = armed
        armed.is_lost = False
        on_event = partial(self._on_kazoo_event, armed)
        try:
            if armed.kind is WatchKind.DATA:
                stat = await self._ask(
                    lambda k: k.exists_async(armed.path, watch=on_event), armed.path
                )
                return None if stat is None else int(stat.mzxid)
            _, stat = await self._ask(
                lambda k: k.get_children_async(armed.path, watch=on_event, include_data=True),
                armed.path,
            )
            return int(stat.pzxid)
        except NoNode:
            self._forget(armed)
            raise
        except ZnodeConnectionLost:
            if self._armed.get(armed.key) is armed and not armed.is_lost:
                self._forget(armed)
            raise

    def _on_kazoo_event(self, armed: _Armed, event: WatchedEvent) -> None:
        """Take an event on kazoo's thread."""
        self._soon(partial(self._fired, armed, event.type))

    def _fired(self, armed: _Armed, type_: str) -> None:
        if self._armed.get(armed.key) is not armed:
            return
        event_type = _EVENTS.get(type_)
        if event_type is None:
            # The connection is lost, and kazoo's watch with it.
            armed.is_lost = True
            return
        self._tell(armed, event_type)

    def _tell(self, armed: _Armed, type_: EventType) -> None:
        self._forget(armed)
        if type_ is EventType.DELETED:
            # One removal is one event, also for who watches the node and its children.
            for kind in WatchKind:
                self._armed.pop((kind, armed.path, armed.watcher), None)
        armed.watcher(WatchEvent(type_, armed.path))

    def _forget(self, armed: _Armed) -> None:
        if self._armed.get(armed.key) is armed:
            del self._armed[armed.key]

    async def _reconnected(self) -> None:
        for armed in [armed for armed in self._armed.values() if armed.is_lost]:
            if self._armed.get(armed.key) is not armed:
                continue
            armed.is_lost = False
            try:
                await self._set_again(armed)
            except (ZnodeConnectionLost, SessionExpired):
                armed.is_lost = True
                return
        self.on_session(SessionEvent.RECONNECTED)

    async def _set_again(self, armed: _Armed) -> None:
        seen_zxid = armed.seen_zxid
        try:
            now_zxid = await self._arm(armed)
        except NoNode:
            armed.watcher(WatchEvent(EventType.DELETED, armed.path))
            return
        armed.seen_zxid = now_zxid
        if self._armed.get(armed.key) is not armed or now_zxid == seen_zxid:
            return
        if now_zxid is None:
            self._tell(armed, EventType.DELETED)
        elif armed.kind is WatchKind.CHILDREN:
            self._tell(armed, EventType.CHILDREN_CHANGED)
        else:
            was_there = seen_zxid is not None
            self._tell(armed, EventType.DATA_CHANGED if was_there else EventType.CREATED)

    def _soon(self, work: Callable[[], None]) -> None:
        self._timers.call_from_thread(work)


def _check(operation: Operation) -> None:
    path = operation.path
    is_sequential = isinstance(operation, Create) and operation.sequential
    check_path(path + "0" if is_sequential else path)
    data = operation.data if isinstance(operation, Create | SetData) else None
    # A server cuts the connection at what is too large.
    if data is not None and len(data) > ZNODE_DATA_BYTES_MAX:
        raise ZnodeLimitExceeded(path, "bytes of data", ZNODE_DATA_BYTES_MAX)


def _message(chroot: str, operation: Operation) -> Any:
    """Return an operation of a multi; kazoo's own calls would not take a node without data."""
    path = f"{chroot}{operation.path}" if operation.path != "/" else chroot or "/"
    if isinstance(operation, Create):
        flags = operation.ephemeral | operation.sequential << 1
        return CreateMessage(path, operation.data, OPEN_ACL_UNSAFE, flags)
    if isinstance(operation, SetData):
        return SetDataMessage(path, operation.data, operation.version)
    if isinstance(operation, Delete):
        return DeleteMessage(path, operation.version)
    return CheckVersion(path, operation.version)


def _result(operation: Operation, result: Any) -> OperationResult:
    if isinstance(operation, Create):
        return str(result)
    return stat_of(result) if isinstance(operation, SetData) else None


def stat_of(kazoo_stat: Any) -> Stat:
    """Return kazoo's stat of a node as ours."""
    return Stat(
        czxid=kazoo_stat.czxid,
        mzxid=kazoo_stat.mzxid,
        ctime_ms=kazoo_stat.ctime,
        mtime_ms=kazoo_stat.mtime,
        version=kazoo_stat.version,
        cversion=kazoo_stat.cversion,
        ephemeral_owner=kazoo_stat.ephemeralOwner,
        data_length_bytes=kazoo_stat.dataLength,
        child_count=kazoo_stat.numChildren,
        pzxid=kazoo_stat.pzxid,
    )
