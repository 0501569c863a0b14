"""Looks at the nodes of any ZooKeeper, waiting for each response: for tools.

Changes are found by comparing: each event makes a new picture of the node and its children, with
every watch set again before. Two changes of a node that come close together are one then.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from logging import CRITICAL, Logger
from types import TracebackType
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from engine.errors import ZnodeError
from engine.limits import ZOOKEEPER_TOOL_SESSION_MS
from engine.znode.errors import NoNode
from engine.znode.kazoo_client import ZookeeperAddress, stat_of
from engine.znode.kazoo_errors import engine_error
from engine.znode.model import ANY_VERSION, Stat
from engine.znode.names import ROOT, check_path

_UNREACHABLE_EXIT = 3
_NO_NODE_HINT = "`kctl znode tree` shows what is there"


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
    """A node below another; `depth` is 0 for the one that was asked for."""

    path: str
    depth: int
    stat: Stat


class NodeChange(NamedTuple):
    """What happened to a node: `created`, `changed` or `deleted`, the last without a stat."""

    event: str
    path: str
    stat: Stat | None


class ZnodeReader:
    """A session for looking, closed by leaving its `with`."""

    def __init__(self, connect: str, timeout_s: float) -> None:
        """Take `host:port,…/chroot`; raises ConfigError."""
        self._address = ZookeeperAddress(connect)
        self._timeout_s = timeout_s
        self._kazoo = KazooClient(
            self._address.servers,
            timeout=ZOOKEEPER_TOOL_SESSION_MS / 1000,
            # What goes wrong is an error of ours; nothing else is for the user.
            logger=Logger("zookeeper", CRITICAL + 1),
        )

    def __enter__(self) -> ZnodeReader:
        """Connect; raises ZookeeperUnreachable."""
        try:
            self._kazoo.start(self._timeout_s)
        except KazooTimeoutError as error:
            raise ZookeeperUnreachable(str(self._address), self._timeout_s) from error
        self._kazoo.chroot = self._address.chroot
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the session."""
        self._kazoo.stop()
        self._kazoo.close()

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
        """Return a node's children by name; raises NoNode."""
        check_path(path)
        names = self._wait(self._kazoo.get_children_async(path), path)
        return self._views([child_path(path, name) for name in sorted(names)], None)

    def tree(self, path: str, depth_max: int | None) -> Iterator[TreeNode]:
        """Return a node and those below it, parents before children, down to a depth."""
        yield from self._below(TreeNode(path, 0, self.stat(path)), depth_max)

    def _below(self, node: TreeNode, depth_max: int | None) -> Iterator[TreeNode]:
        yield node
        if not node.stat.child_count or node.depth == depth_max:
            return
        try:
            children = self.children(node.path)
        except NoNode:
            # It went while we looked.
            return
        for child in children:
            yield from self._below(TreeNode(child.path, node.depth + 1, child.stat), depth_max)

    def changes(self, path: str) -> Iterator[NodeChange]:
        """Return what happens to a node and its children from now on, as it comes."""
        check_path(path)
        events: queue.SimpleQueue[object] = queue.SimpleQueue()
        before = self._picture(path, events.put)
        while True:
            events.get()
            while not events.empty():
                events.get()
            after = self._picture(path, events.put)
            yield from changes_between(before, after)
            before = after

    def _picture(self, path: str, on_event: Callable[[object], None]) -> dict[str, Stat]:
        """Return the node and its children, and have what changes from here on told."""
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
        """Return those of the nodes that are there; all are asked for before the first response."""
        requests = [(path, self._kazoo.exists_async(path, watch=on_event)) for path in paths]
        stats = [(path, self._wait(request, path)) for path, request in requests]
        return [NodeView(path, stat_of(stat)) for path, stat in stats if stat is not None]

    def _wait(self, request: Any, path: str) -> Any:
        try:
            return request.get(timeout=self._timeout_s)
        except KazooTimeoutError as error:
            raise ZookeeperUnreachable(str(self._address), self._timeout_s) from error
        except KazooException as error:
            refused = engine_error(error, path, ANY_VERSION, 0)
            if isinstance(refused, NoNode):
                refused.hint = _NO_NODE_HINT
            raise refused from error


def child_path(parent: str, name: str) -> str:
    """Return the path of a child."""
    return f"/{name}" if parent == ROOT else f"{parent}/{name}"


def changes_between(before: dict[str, Stat], after: dict[str, Stat]) -> list[NodeChange]:
    """Return what made one picture of nodes into another: removals, then by transaction."""
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
