"""The session of a ZooKeeper shell: nodes with their ACLs, ephemeral nodes and watches.

A shell that cannot connect reports it after one attempt at each server. A request during a lost
connection fails in the same way. Attempts continue until the session is closed.

Source: SendThread of ClientCnxn of ZooKeeper 3.8.
Differs: all servers of a list are tried before a request fails, where Java's fails with the first;
watches end with a lost connection, where Java's are set again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.protocol.paths import _prefix_root
from kazoo.protocol.serialization import GetData, Reconfig, Watch
from kazoo.protocol.states import Callback, KazooState, KeeperState, WatchedEvent, ZnodeStat
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from engine.errors import EngineError
from engine.host.ports import Clock
from engine.limits import ZOOKEEPER_TOOL_SESSION_MS
from engine.znode.errors import InvalidZnodePath, NoNode, ZnodeConnectionLost
from engine.znode.kazoo_client import stat_of
from engine.znode.kazoo_editor import ZnodeEditor
from engine.znode.kazoo_reader import QuietHandler, ZookeeperUnreachable, child_path
from engine.znode.kazoo_requests import (
    AddWatch,
    CreateContainer,
    CreateWithTimeToLive,
    GetAllChildrenNumber,
    RemoveWatches,
    WhoAmI,
)
from engine.znode.model import ANY_VERSION, EventType, NodeAclEntry
from engine.znode.names import ROOT, parent_of
from engine.znode.node_acl import NodeRefused, ShellStat
from engine.znode.zookeeper_wire import RequestRefused

if TYPE_CHECKING:
    from kazoo.interfaces import IAsyncResult

OnEvent = Callable[[EventType, str], None]
OnState = Callable[[str], None]
#: Types of the events that fire watches of data, and of children.
_OF_DATA: Final = (EventType.CREATED, EventType.DELETED, EventType.DATA_CHANGED)
_OF_CHILDREN: Final = (EventType.DELETED, EventType.CHILDREN_CHANGED)
#: Types of watches in a request.
CHILDREN_WATCHES: Final = 1
DATA_WATCHES: Final = 2
ALL_WATCHES: Final = 3
_CONFIG: Final = "/zookeeper/config"
#: Names of a session's states in ZooKeeper's client.
_STATES: Final = {
    KazooState.CONNECTED: "SyncConnected",
    KazooState.SUSPENDED: "Disconnected",
    KazooState.LOST: "Expired",
}
_CONNECT_POLL_S: Final = 0.01
_PAUSE_S: Final = 0.1
_UNIMPLEMENTED: Final = -6
_NO_WATCHER: Final = -121
_AUTH_FAILED: Final = "AuthFailed"


class _ShellHandler(QuietHandler):
    """Kazoo's threads, which call a function between attempts to connect."""

    def __init__(self, pause: Callable[[float], None]) -> None:
        """`pause` is called between attempts, with the seconds to wait."""
        super().__init__()
        self.sleep_func = pause


class ZnodeShellSession(ZnodeEditor):
    """A session with everything that ZooKeeper's shell does to nodes.

    `on_event` is called for the events of watches, `on_state` with ZooKeeper's name of each state
    that follows the first connection; both on threads of kazoo's.
    """

    def __init__(
        self, connect: str, timeout_s: float, clock: Clock, on_event: OnEvent, on_state: OnState
    ) -> None:
        """Parse `host:port,…/chroot`; raises ConfigError."""
        super().__init__(connect, timeout_s, clock)
        self._on_event = on_event
        self._on_state = on_state
        #: Whether the last attempt made a connection; a further attempt shows that it was lost.
        self._was_connected = False
        #: Whether there ever was a connection.
        self._has_begun = False
        #: Whether the server refused a log-in, which ends the session.
        self.has_failed = False
        #: Set by a close: it ends the pause before the next attempt.
        self._closing = threading.Event()
        #: Set when an attempt without an earlier connection has failed: `_connect` then gives up.
        self._given_up = threading.Event()
        handler = _ShellHandler(self._pause)
        self._kazoo = KazooClient(
            self._address.servers,
            timeout=ZOOKEEPER_TOOL_SESSION_MS / 1000,
            handler=handler,
            logger=self._kazoo.logger,
            # Without jitter and growth a pause is one call of the handler's function.
            connection_retry={
                "max_tries": -1,
                "delay": _PAUSE_S,
                "backoff": 1,
                "max_jitter": 0,
                "sleep_func": handler.sleep_func,
            },
        )
        self._kazoo.add_listener(self._note_state)
        # Kazoo has no persistent watches, and would call a watcher of data and children twice.
        self._kazoo._connection._read_watch_event = self._read_event
        #: Persistent watches by path below the chroot, with whether each is recursive.
        self._persistent: dict[str, bool] = {}

    def __enter__(self) -> ZnodeShellSession:
        """Connect; raises ZookeeperUnreachable when no server accepts."""
        super().__enter__()
        return self

    def _connect(self) -> None:
        """Wait for a connection; raise ZookeeperUnreachable once no server has accepted."""
        connected = self._kazoo.start_async()
        while not connected.wait(_CONNECT_POLL_S):
            if self._given_up.is_set() or not self._left_s():
                break
        if not self._kazoo.connected:
            self._begin_close(0)
            raise ZookeeperUnreachable(str(self._address), self._timeout_s)

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; after attempts at all servers, fail the requests first."""
        if self._was_connected:
            self._was_connected = False
        else:
            self._given_up.set()
            self._kazoo._notify_pending(KeeperState.CONNECTING)
        # Without a first connection `_connect` gives up and closes, however late it runs.
        is_ending = self._given_up.is_set() and not self._has_begun
        if self._closing.wait(None if is_ending else seconds):
            # No further attempt before the client is stopped.
            self._kazoo._stopped.wait()

    def _note_state(self, state: str) -> None:
        """Report a state of the connection to the shell.

        The caller reports the first state and those after `close`.
        """
        if self._kazoo.client_state == KeeperState.AUTH_FAILED:
            self.has_failed = True
        if self._has_begun and not self._closing.is_set():
            self._on_state(_AUTH_FAILED if self.has_failed else _STATES[state])
        if state == KazooState.CONNECTED:
            self._was_connected = self._has_begun = True
        else:
            self._persistent.clear()

    def _begin_close(self, wait_s: float) -> None:
        """Begin to close kazoo's client.

        End a pause between attempts, and report no more states.
        """
        self._closing.set()
        super()._begin_close(wait_s)

    @property
    def chroot(self) -> str:
        """Return the path of the address, below which all paths are; empty without one."""
        return self._address.chroot.rstrip("/")

    def settle(self) -> None:
        """Wait until the events that came before the last response have been reported."""
        done = threading.Event()
        self._kazoo.handler.dispatch_callback(Callback("settle", done.set, ()))
        done.wait(self._left_s())

    # -- reading

    def node_data(self, path: str, *, watches: bool) -> tuple[bytes | None, ShellStat]:
        """Return a node's data and stat; raises NoNode. `watches` sets a one-shot watch."""
        data, stat = self._wait(self._kazoo.get_async(path, self._watcher(watches)), path)
        return data, _stat_of(stat)

    def node_stat(self, path: str, *, watches: bool) -> ShellStat:
        """Return a node's stat; raises NoNode. `watches` sets a one-shot watch."""
        stat = self._wait(self._kazoo.exists_async(path, self._watcher(watches)), path)
        if stat is None:
            raise NoNode(path)
        return _stat_of(stat)

    def child_names(self, path: str, *, watches: bool) -> tuple[list[str], ShellStat]:
        """Return the sorted names of a node's children, and its stat; raises NoNode.

        `watches` sets a one-shot watch of its children.
        """
        request = self._kazoo.get_children_async(path, self._watcher(watches), include_data=True)
        names, stat = self._wait(request, path)
        return sorted(names), _stat_of(stat)

    def acl(self, path: str) -> tuple[list[NodeAclEntry], ShellStat]:
        """Return a node's ACL and its stat; raises NoNode."""
        entries, stat = self._wait(self._kazoo.get_acls_async(path), path)
        acl = [NodeAclEntry(entry.perms, entry.id.scheme, entry.id.id) for entry in entries]
        return acl, _stat_of(stat)

    def count_below(self, path: str) -> int:
        """Return the number of descendants of a node; raises NoNode.

        If the server lacks the request, the children of each descendant are requested.
        """
        try:
            request = self._kazoo.handler.async_result()
            counting = GetAllChildrenNumber(_prefix_root(self._kazoo.chroot, path))
            self._kazoo._call(counting, request)
            return int(self._wait(request, path))
        except NodeRefused as error:
            if error.code != _UNIMPLEMENTED:
                raise
            return len(self.paths_below(path)) - 1

    def paths_below(self, path: str) -> list[str]:
        """Return a path and the paths of all its descendants, parents before children."""
        paths = [path]
        for parent in paths:
            names, _ = self.child_names(parent, watches=False)
            paths += [child_path(parent, name) for name in names]
        return paths

    def sync(self, path: str) -> None:
        """Wait until the server has applied what its leader has committed."""
        self._wait(self._kazoo.sync_async(path), path)

    def identities(self) -> list[tuple[str, str]]:
        """Return the identities (scheme and user) that the server attributes to this client."""
        request = self._kazoo.handler.async_result()
        self._kazoo._call(WhoAmI(), request)
        return list(self._wait(request, ROOT))

    def configuration(self, *, watches: bool) -> tuple[bytes | None, ShellStat]:
        """Return the servers of the ensemble from its configuration node, outside any chroot."""
        request = self._kazoo.handler.async_result()
        self._kazoo._call(GetData(_CONFIG, self._watcher(watches)), request)
        data, stat = self._wait(request, _CONFIG)
        return data, _stat_of(stat)

    def reconfigure(
        self, joining: str | None, leaving: str | None, members: str | None, version: int
    ) -> tuple[bytes | None, ShellStat]:
        """Change the servers of an ensemble; return the configuration that was committed.

        `version` is that of the configuration to replace, -1 for any. None leaves a list out.
        """
        request = self._kazoo.handler.async_result()
        self._kazoo._call(Reconfig(joining, leaving, members, version), request)
        data, stat = self._wait(request, "")
        return data, _stat_of(stat)

    # -- watches

    def add_watch(self, path: str, *, is_recursive: bool) -> None:
        """Set a persistent watch on one node, or on all its descendants too."""
        watched = _prefix_root(self._kazoo.chroot, path)
        request = self._kazoo.handler.async_result()
        self._kazoo._call(AddWatch(watched, int(is_recursive)), request)
        self._wait(request, path)
        self._persistent[watched] = is_recursive

    def remove_watches(self, path: str, kind: int, *, is_local: bool) -> None:
        """Remove the watches of a node and report each kind; without the server if `is_local`.

        Raises NodeRefused (−121) if the node has no watch.
        """
        watched = _prefix_root(self._kazoo.chroot, path)
        request = self._kazoo.handler.async_result()
        self._kazoo._call(RemoveWatches(watched, kind), request)
        try:
            self._wait(request, path)
        except ZnodeConnectionLost:
            if not is_local:
                raise
        removed = []
        if kind != CHILDREN_WATCHES and self._kazoo._data_watchers.pop(watched, None):
            removed.append(EventType.DATA_WATCH_REMOVED)
        if kind != DATA_WATCHES and self._kazoo._child_watchers.pop(watched, None):
            removed.append(EventType.CHILD_WATCH_REMOVED)
        if kind == ALL_WATCHES and self._persistent.pop(watched, None) is not None:
            removed.append(EventType.PERSISTENT_WATCH_REMOVED)
        if not removed:
            raise NodeRefused(_NO_WATCHER, path)
        for event in removed:
            self._dispatch(event, watched)

    def _watcher(self, watches: bool) -> Callable[[WatchedEvent], None] | None:
        """Return the watcher to give to kazoo, None for a read that sets no watch."""
        return _no_report if watches else None

    def _read_event(self, buffer: bytes, offset: int) -> None:
        """Report an event once if a watch for it is set, on kazoo's thread for watchers."""
        (number, _, path), _ = Watch.deserialize(buffer, offset)
        event = EventType(number)
        watchers: set[object] = set()
        if event in _OF_DATA:
            watchers |= self._kazoo._data_watchers.pop(path, set())
        if event in _OF_CHILDREN:
            watchers |= self._kazoo._child_watchers.pop(path, set())
        if watchers or self._is_persistent(path):
            self._dispatch(event, path)

    def _is_persistent(self, path: str) -> bool:
        """Return True if a persistent watch of the path, or a recursive one above it, is set."""
        if path in self._persistent:
            return True
        while path != ROOT:
            path = parent_of(path)
            if self._persistent.get(path):
                return True
        return False

    def _dispatch(self, event: EventType, path: str) -> None:
        """Report an event on kazoo's thread of watchers, with the path below the chroot."""
        report = Callback("watch", self._on_event, (event, self._kazoo.unchroot(path)))
        self._kazoo.handler.dispatch_callback(report)

    # -- changing

    def create_node(
        self,
        path: str,
        data: bytes | None,
        acl: Sequence[NodeAclEntry] | None,
        *,
        ephemeral: bool,
        sequential: bool,
        container: bool = False,
        ttl_ms: int | None = None,
    ) -> str:
        """Create a node and return its path; without an `acl` everybody has all permissions.

        A server deletes a container after its last child, and a node with `ttl_ms` once it has had
        no change and no children for that time.
        """
        entries = None if acl is None else _entries(acl)
        if not container and ttl_ms is None:
            request = self._kazoo.create_async(
                path, data, entries, ephemeral=ephemeral, sequence=sequential
            )
            return str(self._wait(request, path))
        below = _prefix_root(self._kazoo.chroot, path, trailing=sequential)
        entries = entries or OPEN_ACL_UNSAFE
        request = self._kazoo.handler.async_result()
        if ttl_ms is None:
            self._kazoo._call(CreateContainer(below, data, entries), request)
        else:
            creation = CreateWithTimeToLive(below, data, entries, sequential, ttl_ms)
            self._kazoo._call(creation, request)
        return str(self._kazoo.unchroot(self._wait(request, path)))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version; raises NotEmpty, BadVersion.

        The root is the server's, also with a chroot: InvalidZnodePath.
        """
        if path == ROOT:
            raise InvalidZnodePath(path, "the root cannot be deleted")
        super().delete(path, version)

    def delete_all(self, path: str) -> bool:
        """Remove a node with all its descendants; return False if some remain.

        All paths are read first: an error then, for instance NoNode, leaves all nodes in place.
        """
        paths = self.paths_below(path)
        is_complete = True
        for found in reversed(paths):
            try:
                self.delete(found)
            except ZnodeConnectionLost:
                return False
            except EngineError:
                is_complete = False
        return is_complete

    def set_data(self, path: str, data: bytes, version: int = ANY_VERSION) -> ShellStat:
        """Replace a node's data if it has the version; raises NoNode, BadVersion."""
        return _stat_of(self._wait(self._kazoo.set_async(path, data, version), path, version))

    def set_acl(self, path: str, acl: Sequence[NodeAclEntry], version: int) -> ShellStat:
        """Replace a node's ACL if that has the version; raises NoNode, BadVersion."""
        request = self._kazoo.set_acls_async(path, _entries(acl), version)
        return _stat_of(self._wait(request, path, version))

    def add_auth(self, scheme: str, credential: str) -> None:
        """Prove an identity by a scheme such as `digest`.

        A server that refuses closes the session.
        """
        self._kazoo.add_auth_async(scheme, credential)

    def _wait(self, request: IAsyncResult, path: str, version: int = ANY_VERSION) -> Any:
        """Return the response to a request.

        Raise NodeRefused, which names the path, for a refusal.
        """
        try:
            return super()._wait(request, path, version)
        except RequestRefused as error:
            raise NodeRefused(error.code, path) from error


def _no_report(_: WatchedEvent) -> None:
    """Ignore an event that kazoo reports, because `_read_event` reports it."""


def _entries(acl: Sequence[NodeAclEntry]) -> list[ACL]:
    """Return an ACL in kazoo's form."""
    return [ACL(entry.permissions, Id(entry.scheme, entry.id)) for entry in acl]


def _stat_of(stat: ZnodeStat) -> ShellStat:
    """Return a node's stat with the version of its ACL."""
    return ShellStat(stat_of(stat), stat.aversion)
