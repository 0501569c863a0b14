"""A client of a real ZooKeeper, by the kazoo library; see `client.py` for the rules.

```
engine's thread                            kazoo's thread
request ── queue, wake ──────────────────> socket
promise kept <── call_from_thread ──────── answer         one queue for answers, events and
watcher, on_session <── call_from_thread ─ event, state   states: their order is ZooKeeper's (Z3)
```

Kazoo forgets watches when a connection is lost. `kept_watches.py` sets them again, before any
further read and before RECONNECTED is reported.

After EXPIRED nothing of the session is left; `connect` makes a new client.

Source: kafka.zookeeper.ZooKeeperClient, whose library sets watches again as `kept_watches.py` does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.hosts import collect_hosts
from kazoo.protocol.serialization import CheckVersion
from kazoo.protocol.serialization import Create as CreateMessage
from kazoo.protocol.serialization import Delete as DeleteMessage
from kazoo.protocol.serialization import SetData as SetDataMessage
from kazoo.protocol.states import KazooState, WatchedEvent
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from engine.errors import ConfigError, ZnodeError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Entropy, Timers
from engine.host.promise import Promise
from engine.limits import ZNODE_DATA_BYTES_MAX, ZOOKEEPER_RETRY_DELAY_MAX_MS
from engine.znode.errors import (
    InvalidZnodePath,
    NodeExists,
    SessionExpired,
    ZnodeConnectionLost,
    ZnodeLimitExceeded,
    ZnodeLoginRefused,
)
from engine.znode.kazoo_errors import engine_error, refusal_of_multi
from engine.znode.kazoo_login import KazooLogin
from engine.znode.kept_watches import KeptWatches
from engine.znode.login import ZookeeperLogin
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
from engine.znode.names import check_path
from engine.znode.protection import protected_acl

if TYPE_CHECKING:
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import ZnodeStat

_log = logging.getLogger("kafka.zookeeper.ZooKeeperClient")
_EVENTS = {
    "CREATED": EventType.CREATED,
    "DELETED": EventType.DELETED,
    "CHANGED": EventType.DATA_CHANGED,
    "CHILD": EventType.CHILDREN_CHANGED,
}


class _Inline:
    """Runs callbacks at once, which kazoo would pass to one of two threads and lose their order."""

    def put(self, work: Callable[[], None]) -> None:
        """Run the callback on the calling thread."""
        work()


class InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Kazoo's threading handler reduced to one thread, that of the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.callback_queue = self.completion_queue = _Inline()

    def start(self) -> None:
        """Mark the handler as running; there are no workers."""
        self._running = True

    def stop(self) -> None:
        """Mark the handler as stopped."""
        self._running = False


class ZookeeperAddress:
    """Addresses of an ensemble, `host:port,…`, and the node that is the root of the cluster."""

    def __init__(self, connect: str) -> None:
        """Parse a `zookeeper.connect`; raises ConfigError."""
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
    """Ignore a session event: no listener is set."""


class ZookeeperSecurity(NamedTuple):
    """Login of a client, and whether it protects the nodes that it creates."""

    entropy: Entropy
    login: ZookeeperLogin | None = None
    protects: bool = False


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
        security: ZookeeperSecurity | None = None,
    ) -> None:
        """Create without a session; without `security`, open nodes and no login."""
        self._address = address
        self._timers = timers
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._security = security
        #: The logins of the current kazoo client; None if the session has none.
        self._logins: KazooLogin | None = None
        #: The kazoo client of the current session; None without one. Each session has a new client.
        self._kazoo: KazooClient | None = None
        #: Promise of a `connect` that waits for a server; None otherwise.
        self._connecting: Promise[None] | None = None
        #: Whether `connect` has not ended yet: it then reports the end of the session, not
        #: `on_session`.
        self._is_preparing = False
        #: Closings of the clients of earlier sessions, which run on worker threads.
        self._closing: list[Promise[None]] = []
        self._session_id = 0
        #: Watches of the current session, which are set again after a lost connection.
        self._watches = KeptWatches(self._request_watch)
        #: Called at each change of the session.
        self.on_session: Callable[[SessionEvent], None] = _ignore

    @property
    def session_id(self) -> int:
        """Return the id of the session, 0 before the first."""
        return self._session_id

    # -- the session ---------------------------------------------------------------------------

    async def connect(self) -> None:
        """Begin a session, and create the chroot if it is missing.

        Errors: ConnectionLost if no server answers in time, ZnodeLoginRefused.
        """
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
        login, self._logins = self._login, None
        if login is not None and self._security is not None:
            self._logins = KazooLogin(kazoo, login, self._security.entropy)
        kazoo.add_listener(
            lambda state: self._run_on_loop(partial(self._on_state_change, kazoo, state))
        )
        self._kazoo, self._is_preparing, self._session_id = kazoo, True, 0
        self._connecting = connecting = Promise[None]()
        due_ms = self._clock.monotonic_ms() + self._connection_timeout_ms
        cancel = self._timers.call_at(due_ms, partial(self._fail_connect, kazoo))
        kazoo.start_async()
        try:
            await connecting
            await self._prepare(kazoo)
        except ZnodeError as error:
            self._begin_close()
            # Reads of the next session do not wait for the connection of this one.
            self._watches.end()
            if login is not None and self._is_refused:
                raise ZnodeLoginRefused(login.username, str(self._address)) from error
            raise
        finally:
            self._is_preparing = False
            cancel()
        self.on_session(SessionEvent.CONNECTED)

    @property
    def _login(self) -> ZookeeperLogin | None:
        """Return the user name and password to log in with; None for a client without a login."""
        return None if self._security is None else self._security.login

    @property
    def _is_refused(self) -> bool:
        """Return True if the server has refused the login of the current session."""
        return self._logins is not None and self._logins.is_refused

    async def _prepare(self, kazoo: KazooClient) -> None:
        """Create the chroot if it is missing; with a login, always send a first request.

        kazoo reports a connection before its login: the request waits for the login, or fails with
        it.
        """
        chroot = self._address.chroot
        if self._login is not None or chroot:
            is_there = await self._request(lambda k: k.exists_async(chroot or "/"), "/")
            if not is_there:
                await self._make_chroot(chroot)
        kazoo.chroot = chroot

    async def _make_chroot(self, chroot: str) -> None:
        """Create the nodes of the chroot that are missing, the highest first."""
        ends = [place for place, letter in enumerate(chroot) if letter == "/"][1:]
        for path in (*(chroot[:end] for end in ends), chroot):
            if await self._request(partial(_request_stat, path), path) is None:
                with suppress(NodeExists):
                    await self._request(partial(_request_creation, path, self._acl(path)), path)

    def _acl(self, path: str) -> list[ACL]:
        """Return the ACL for a new node at a path: open to all, unless nodes are protected."""
        if self._security is None or not self._security.protects:
            return list(OPEN_ACL_UNSAFE)
        return [ACL(entry.permissions, Id(*entry[1:])) for entry in protected_acl(path)]

    def _fail_connect(self, kazoo: KazooClient) -> None:
        """Fail `connect` with ZnodeConnectionLost, unless it has ended; called at its timeout."""
        connecting = self._connecting
        if kazoo is self._kazoo and connecting is not None:
            self._connecting = None
            waited = f"no server of {self._address} within {self._connection_timeout_ms} ms"
            connecting.fail(ZnodeConnectionLost(waited))

    def _on_state_change(self, kazoo: KazooClient, state: str) -> None:
        """Pass a change of kazoo's connection state to the watches and the session listener."""
        if kazoo is not self._kazoo:
            return
        if state == KazooState.CONNECTED:
            self._on_connected(kazoo)
        elif state == KazooState.SUSPENDED:
            self._watches.on_connection_loss()
            self.on_session(SessionEvent.SUSPENDED)
        elif not self._is_preparing:
            _log.warning("session 0x%x has expired", self._session_id)
            self._begin_close()
            self._watches.end()
            self.on_session(SessionEvent.EXPIRED)

    def _on_connected(self, kazoo: KazooClient) -> None:
        """Complete `connect`, or resume the session after a lost connection."""
        connecting, identity = self._connecting, kazoo.client_id
        if identity is not None:
            # A new id if an earlier session expired while `connect` was waiting.
            self._session_id, _ = identity
        if connecting is not None:
            self._connecting = None
            connecting.keep(None)
        else:
            drive(self._restore_watches())

    async def close(self) -> None:
        """End the session, its ephemeral nodes and watches; closing twice is allowed."""
        self._begin_close()
        self._watches.end()
        for closing in list(self._closing):
            await closing

    def _begin_close(self) -> None:
        """Begin to close kazoo's client, on a thread: it waits for the server's response."""
        kazoo, self._kazoo = self._kazoo, None
        if kazoo is None:
            return
        done = Promise[None]()
        self._closing.append(done)
        done.watch(lambda: self._closing.remove(done))

        def stop() -> None:
            """Close kazoo's client on its own thread; keep the promise on the loop."""
            try:
                kazoo.stop()
                kazoo.close()
            except (KazooException, OSError) as error:
                _log.warning("the session could not be closed and will expire: %s", error)
            finally:
                self._run_on_loop(partial(done.keep, None))

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
        """Create a node and return its path; a sequential node's path has ten digits at its end."""
        _check_operation(Create(path, data, ephemeral, sequential))
        created = await self._request(
            lambda k: k.create_async(
                path, data, self._acl(path), ephemeral=ephemeral, sequence=sequential
            ),
            path,
        )
        return str(created)

    async def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        check_path(path)
        data, stat = await self._read(lambda k: k.get_async(path), path)
        return data, stat_of(stat)

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        _check_operation(SetData(path, data, version))
        stat = await self._request(lambda k: k.set_async(path, data, version), path, version)
        return stat_of(stat)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version.

        Raises NoNode, NotEmpty, BadVersion.
        """
        check_path(path)
        await self._request(lambda k: k.delete_async(path, version), path, version)

    async def exists(self, path: str) -> Stat | None:
        """Return a node's stat, or None if it does not exist."""
        check_path(path)
        stat = await self._read(lambda k: k.exists_async(path), path)
        return None if stat is None else stat_of(stat)

    async def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        check_path(path)
        return sorted(await self._read(lambda k: k.get_children_async(path), path))

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations or none, and return their results in order.

        The error of a failed operation has its `operation_index`.
        """
        for operation in operations:
            _check_operation(operation)

        def commit(kazoo: KazooClient) -> IAsyncResult:
            """Send all operations as one transaction of kazoo, with the ACLs of new nodes."""
            transaction = kazoo.transaction()
            for operation in operations:
                message = _multi_message(kazoo.chroot or "", operation, self._acl(operation.path))
                transaction.operations.append(message)
            return transaction.commit_async()

        results = await self._request(commit, operations[0].path if operations else "/")
        error = refusal_of_multi(results, operations)
        if error is not None:
            raise error
        return [
            _operation_result(operation, result)
            for operation, result in zip(operations, results, strict=True)
        ]

    async def _read(self, send: Callable[[KazooClient], IAsyncResult], path: str) -> Any:
        """Return a read's result, in order with the events of watches; raise ConnectionLost."""
        return await self._watches.read(lambda: self._request(send, path))

    async def _request(
        self, send: Callable[[KazooClient], IAsyncResult], path: str, version: int = ANY_VERSION
    ) -> Any:
        """Send a request by kazoo and return its result on the loop; raise the engine's error.

        `send` starts the request. `path` and `version` are those of the operation, for the error.
        """
        kazoo = self._kazoo
        if kazoo is None:
            raise SessionExpired(self._session_id)
        promise = Promise[Any]()
        session_id = self._session_id

        def settle(result: IAsyncResult) -> None:
            """Keep or fail the request's promise once, with the engine's error."""
            # kazoo fails a request twice if it could not queue it.
            if promise.is_kept:
                return
            if result.exception is None:
                promise.keep(result.value)
            else:
                promise.fail(self._error(result.exception, path, version, session_id))

        send(kazoo).rawlink(lambda result: self._run_on_loop(partial(settle, result)))
        return await promise

    def _error(self, error: Exception, path: str, version: int, session_id: int) -> ZnodeError:
        """Return the engine's error for an exception of kazoo.

        A refused login is SessionExpired, because the session cannot be resumed.
        """
        if isinstance(error, AuthFailedError) and self._is_refused:
            return SessionExpired(session_id)
        return engine_error(error, path, version, session_id)

    # -- watches -------------------------------------------------------------------------------

    async def watch(self, path: str, kind: WatchKind, watcher: Watcher) -> None:
        """Set a one-shot watch; for children the node must exist (NoNode)."""
        check_path(path)
        await self._watches.watch(path, kind, watcher)

    async def _request_watch(
        self, path: str, kind: WatchKind, on_event: Callable[[EventType], None]
    ) -> int | None:
        """Set a watch at the server; return the zxid of the node's last change, None without it.

        `on_event` is called once, on the loop, when the watch fires.
        """

        def on_kazoo_event(event: WatchedEvent) -> None:
            """Hand an event over from kazoo's thread; connection events belong to the session."""
            event_type = _EVENTS.get(event.type)
            if event_type is not None:
                self._run_on_loop(partial(on_event, event_type))

        if kind is WatchKind.DATA:
            stat = await self._request(lambda k: k.exists_async(path, watch=on_kazoo_event), path)
            return None if stat is None else int(stat.mzxid)
        _, stat = await self._request(
            lambda k: k.get_children_async(path, watch=on_kazoo_event, include_data=True), path
        )
        return int(stat.pzxid)

    async def _restore_watches(self) -> None:
        """Set the watches of the session again, and report RECONNECTED once all are set."""
        with suppress(SessionExpired):
            if await self._watches.set_all_again():
                self.on_session(SessionEvent.RECONNECTED)

    def _run_on_loop(self, work: Callable[[], None]) -> None:
        """Run work on the loop's thread: kazoo calls back on its own threads."""
        self._timers.call_from_thread(work)


def _check_operation(operation: Operation) -> None:
    """Raise for an invalid path, or ZnodeLimitExceeded for data above the maximum."""
    path = operation.path
    is_sequential = isinstance(operation, Create) and operation.sequential
    check_path(path + "0" if is_sequential else path)
    data = operation.data if isinstance(operation, Create | SetData) else None
    # A server closes the connection when a request is too large.
    if data is not None and len(data) > ZNODE_DATA_BYTES_MAX:
        raise ZnodeLimitExceeded(path, "bytes of data", ZNODE_DATA_BYTES_MAX)


def _request_stat(path: str, kazoo: KazooClient) -> IAsyncResult:
    """Request the stat of a node; the result is None where there is no node."""
    return kazoo.exists_async(path)


def _request_creation(path: str, acl: list[ACL], kazoo: KazooClient) -> IAsyncResult:
    """Request the creation of a node without data."""
    return kazoo.create_async(path, None, acl)


def _multi_message(chroot: str, operation: Operation, acl: list[ACL]) -> Any:
    """Return kazoo's message for an operation of a multi, on its path below the chroot.

    kazoo's own calls would not accept a node without data.
    """
    path = f"{chroot}{operation.path}" if operation.path != "/" else chroot or "/"
    if isinstance(operation, Create):
        flags = operation.ephemeral | operation.sequential << 1
        return CreateMessage(path, operation.data, acl, flags)
    if isinstance(operation, SetData):
        return SetDataMessage(path, operation.data, operation.version)
    if isinstance(operation, Delete):
        return DeleteMessage(path, operation.version)
    return CheckVersion(path, operation.version)


def _operation_result(operation: Operation, result: object) -> OperationResult:
    """Return the result of one operation of a multi: a path, a stat or None."""
    if isinstance(operation, Create):
        return str(result)
    return stat_of(result) if isinstance(operation, SetData) else None


def stat_of(kazoo_stat: ZnodeStat) -> Stat:
    """Return the engine's form of kazoo's stat of a node."""
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
