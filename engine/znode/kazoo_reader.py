"""Reads the nodes of any ZooKeeper, waiting for each response: for tools.

Changes are found by comparison: after each event the node and its children are read again, and
the same requests set the watches again. Several changes between two readings appear as one.

All requests within a `with` share one deadline. At the deadline kazoo's threads may still hang, in
a look-up of a name or at a server that accepts and does not respond: they are left running.
`changes` restarts the timeout for each reading: a lost connection must return within it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from logging import CRITICAL, Logger
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState

from engine.errors import ConfigError, ZnodeError
from engine.host.ports import Clock, Entropy
from engine.limits import ZOOKEEPER_TOOL_SESSION_MS
from engine.znode.errors import NoNode, SessionExpired, ZnodeConnectionLost
from engine.znode.kazoo_client import ZookeeperAddress, stat_of
from engine.znode.kazoo_errors import engine_error
from engine.znode.kazoo_login import KazooLogin
from engine.znode.login import JAAS_FILE, ZookeeperLogin
from engine.znode.model import ANY_VERSION, Stat
from engine.znode.names import ROOT, check_path
from engine.znode.zookeeper_wire import RequestRefused

if TYPE_CHECKING:
    from kazoo.interfaces import IAsyncResult

_UNREACHABLE_EXIT = 3
_USAGE_EXIT = 2
#: How long a command waits for the server's response to the end of the session.
_CLOSE_S = 1.0
#: ZooKeeper's codes for an operation that the ACL does not allow, and for a refused login.
_OF_LOGINS = (-102, -115)
_LOGIN_HINT = f"KAFKA_OPTS=-D{JAAS_FILE}=FILE logs in as the section Client of a JAAS file says"
_NO_NODE_HINT = "`kctl znode tree` shows what is there"


def _ignore() -> None:
    """Do nothing: no listener is set."""


class QuietHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Kazoo's threads, which print no traceback when they fail after the reader has left them."""

    def spawn(
        self, func: Callable[..., object], *args: object, **kwargs: object
    ) -> threading.Thread:
        """Start a thread that prints no traceback on an error, which the caller gets anyway."""

        def run(*own: object, **named: object) -> None:
            """Run the thread's function, and drop its exception."""
            with suppress(Exception):
                func(*own, **named)

        thread: threading.Thread = super().spawn(run, *args, **kwargs)
        return thread


class ZookeeperUnreachable(ZnodeError):
    """No server of an ensemble answered in time."""

    exit_code = _UNREACHABLE_EXIT
    hint = "check that it runs, and its address and port; `kctl cluster status -o wide` shows ours"

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(f"no ZooKeeper at {address} answered within {timeout_s:g} s")
        self.address = address


class NodeView(NamedTuple):
    """A node without its data."""

    path: str
    stat: Stat


class TreeNode(NamedTuple):
    """A node below another; `depth` is 0 for the requested one."""

    path: str
    depth: int
    stat: Stat


class NodeChange(NamedTuple):
    """A change of a node: `created`, `changed` or `deleted`; a deleted node has no stat."""

    event: str
    path: str
    stat: Stat | None


class ZnodeReader:
    """A read-only session, closed by leaving its `with`."""

    def __init__(self, connect: str, timeout_s: float, clock: Clock) -> None:
        """Parse `host:port,…/chroot`; raises ConfigError."""
        try:
            self._address = ZookeeperAddress(connect)
        except ConfigError as error:
            error.exit_code = _USAGE_EXIT  # type: ignore[attr-defined]
            raise
        self._timeout_s = timeout_s
        self._clock = clock
        #: Deadline of the connection and of each request (monotonic clock).
        self._deadline_ms = 0
        #: Whether the session has a login.
        self.logs_in = False
        self._kazoo = KazooClient(
            self._address.servers,
            timeout=ZOOKEEPER_TOOL_SESSION_MS / 1000,
            handler=QuietHandler(),
            # Faults are raised as errors of this engine: kazoo's log lines are not for the user.
            logger=Logger("zookeeper", CRITICAL + 1),
        )

    def log_in_as(self, login: ZookeeperLogin, entropy: Entropy) -> None:
        """Log in on every connection; to be called before the session begins."""
        KazooLogin(self._kazoo, login, entropy)
        self.logs_in = True

    @property
    def address(self) -> str:
        """Return the address of the ensemble, with the chroot."""
        return str(self._address)

    def __enter__(self) -> ZnodeReader:
        """Connect; raises ZookeeperUnreachable."""
        self.begin()
        self._connect()
        self._kazoo.chroot = self._address.chroot
        return self

    def _connect(self) -> None:
        """Wait for a connection; raise ZookeeperUnreachable at the deadline."""
        self._kazoo.start_async().wait(self._left_s())
        if not self._kazoo.connected:
            self._begin_close(0)
            raise ZookeeperUnreachable(str(self._address), self._timeout_s)

    def begin(self) -> None:
        """Restart the timeout for the requests that follow."""
        self._deadline_ms = self._clock.monotonic_ms() + round(self._timeout_s * 1000)

    def _left_s(self) -> float:
        """Return the seconds until the deadline, 0 after the deadline."""
        return max(self._deadline_ms - self._clock.monotonic_ms(), 0) / 1000

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session, without waiting long for a server that does not respond."""
        self._begin_close(min(self._left_s(), _CLOSE_S) if kind is None else 0)

    def _begin_close(self, wait_s: float) -> None:
        """Begin to close kazoo's client, on a thread: closing waits for a server that may hang."""

        def stop() -> None:
            """Stop kazoo's client on its own thread and ignore its faults."""
            # Faults of a session that is no longer needed are not reported.
            with suppress(Exception):
                self._kazoo.stop()
                self._kazoo.close()

        closing = threading.Thread(target=stop, name="zookeeper-close", daemon=True)
        closing.start()
        closing.join(wait_s)

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Return a node's data and stat; raises NoNode."""
        check_path(path)
        data, stat = self._wait(self._kazoo.get_async(path), path)
        return data, stat_of(stat)

    def stat(self, path: str) -> Stat:
        """Return a node's stat; raises NoNode."""
        check_path(path)
        stat = self._wait(self._kazoo.exists_async(path), path)
        if stat is None:
            missing = NoNode(path)
            missing.hint = _NO_NODE_HINT
            raise missing
        return stat_of(stat)

    def children(self, path: str) -> list[NodeView]:
        """Return a node's children, sorted by name, each with its stat; raises NoNode."""
        check_path(path)
        names = self._wait(self._kazoo.get_children_async(path), path)
        return self._views([child_path(path, name) for name in sorted(names)], None)

    def tree(self, path: str, depth_max: int | None) -> Iterator[TreeNode]:
        """Yield a node and its descendants down to `depth_max`, parents before children.

        None means all descendants.
        """
        yield from self._walk(TreeNode(path, 0, self.stat(path)), depth_max)

    def _walk(self, node: TreeNode, depth_max: int | None) -> Iterator[TreeNode]:
        """Yield a node and its descendants, depth first; nodes deleted meanwhile are left out."""
        yield node
        if not node.stat.child_count or node.depth == depth_max:
            return
        try:
            children = self.children(node.path)
        except NoNode:
            # It was deleted before this read.
            return
        for child in children:
            yield from self._walk(TreeNode(child.path, node.depth + 1, child.stat), depth_max)

    def changes(
        self,
        path: str,
        on_lost: Callable[[], None] = _ignore,
        on_new_session: Callable[[], None] = _ignore,
    ) -> Iterator[NodeChange]:
        """Yield the changes of a node and its children from now on.

        When the connection is lost, `on_lost` is called; when it returns, the differences to the
        last reading are yielded as new changes. `on_new_session` is called first if the session was
        lost too. Raises ZookeeperUnreachable if the connection does not return in time.
        """
        check_path(path)
        events: queue.SimpleQueue[object] = queue.SimpleQueue()
        before = self._read_and_watch(path, events.put)
        session = self._kazoo.client_id
        while True:
            events.get()
            while not events.empty():
                events.get()
            self.begin()
            if not self._kazoo.connected:
                on_lost()
            after = self._read_and_watch_again(path, events.put)
            if self._kazoo.client_id != session:
                session = self._kazoo.client_id
                on_new_session()
            yield from changes_between(before, after)
            before = after

    def _read_and_watch_again(
        self, path: str, on_event: Callable[[object], None]
    ) -> dict[str, Stat]:
        """Read and watch the nodes again; after a lost connection, wait for the next one first.

        Errors: ZookeeperUnreachable.
        """
        while True:
            back = threading.Event()

            def note(state: str, back: threading.Event = back) -> None:
                """Wake the reader once kazoo is connected again."""
                if state == KazooState.CONNECTED:
                    back.set()

            self._kazoo.add_listener(note)
            try:
                if not self._kazoo.connected and not back.wait(self._left_s()):
                    raise ZookeeperUnreachable(str(self._address), self._timeout_s)
                return self._read_and_watch(path, on_event)
            except (ZnodeConnectionLost, SessionExpired):
                if not self._left_s():
                    raise
            finally:
                self._kazoo.remove_listener(note)

    def _read_and_watch(self, path: str, on_event: Callable[[object], None]) -> dict[str, Stat]:
        """Return the node's and its children's stats by path, and watch them for changes."""
        views = self._views([path], on_event)
        if not views:
            return {}
        try:
            request = self._kazoo.get_children_async(path, watch=on_event)
            names = self._wait(request, path)
        except NoNode:
            names = []
        views += self._views([child_path(path, name) for name in sorted(names)], on_event)
        return dict(views)

    def _views(
        self, paths: Sequence[str], on_event: Callable[[object], None] | None
    ) -> list[NodeView]:
        """Return the nodes that exist, with their stats, in the order of `paths`.

        All requests are sent before the first response. `on_event` watches each path, None for no
        watch.
        """
        requests = [(path, self._kazoo.exists_async(path, watch=on_event)) for path in paths]
        stats = [(path, self._wait(request, path)) for path, request in requests]
        return [NodeView(path, stat_of(stat)) for path, stat in stats if stat is not None]

    def _wait(self, request: IAsyncResult, path: str, version: int = ANY_VERSION) -> Any:
        """Return the response to a request.

        Raise an EngineError, ZookeeperUnreachable at the deadline.
        """
        try:
            return request.get(timeout=self._left_s())
        except KazooTimeoutError as error:
            raise ZookeeperUnreachable(str(self._address), self._timeout_s) from error
        except KazooException as error:
            refused = engine_error(error, path, version, 0)
            if isinstance(refused, NoNode):
                refused.hint = _NO_NODE_HINT
            elif isinstance(refused, RequestRefused) and refused.code in _OF_LOGINS:
                refused.hint = _LOGIN_HINT
            raise refused from error


def child_path(parent: str, name: str) -> str:
    """Return the path of a node's child with this name."""
    return f"/{name}" if parent == ROOT else f"{parent}/{name}"


def changes_between(before: dict[str, Stat], after: dict[str, Stat]) -> list[NodeChange]:
    """Return the changes between two readings of nodes by path.

    Removals come first, then the other changes in the order of their transactions.
    """
    gone = [NodeChange("deleted", path, None) for path in before if path not in after]
    changed = []
    for path, stat in after.items():
        old = before.get(path)
        if old is None or old.czxid != stat.czxid:
            if old is not None:
                gone.append(NodeChange("deleted", path, None))
            changed.append(NodeChange("created", path, stat))
        elif old.mzxid != stat.mzxid:
            changed.append(NodeChange("changed", path, stat))
    return gone + sorted(changed, key=lambda change: change.stat.mzxid if change.stat else 0)
