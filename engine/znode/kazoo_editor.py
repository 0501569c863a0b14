"""Changes nodes of any ZooKeeper, waiting for each response: for tools.

It creates no ephemeral nodes: they would be removed when the command's session ends.
"""

from __future__ import annotations

from engine.limits import ZNODE_DATA_BYTES_MAX
from engine.znode.errors import NodeExists, NoNode, ZnodeLimitExceeded
from engine.znode.kazoo_client import stat_of
from engine.znode.kazoo_reader import ZnodeReader
from engine.znode.model import ANY_VERSION, Stat
from engine.znode.names import ROOT, check_path, parent_of


class ZnodeEditor(ZnodeReader):
    """A session that changes nodes."""

    def __enter__(self) -> ZnodeEditor:
        """Connect; raises ZookeeperUnreachable."""
        super().__enter__()
        return self

    def create(
        self, path: str, data: bytes, *, sequential: bool = False, parents: bool = False
    ) -> str:
        """Create a node and return its path; missing parents are created without data.

        Errors: NodeExists, NoNode for a parent, NoChildrenForEphemerals, ZnodeLimitExceeded.
        """
        check_path(f"{path}0" if sequential else path)
        _check_size(path, data)
        if parents:
            self._make_parents(path)
        request = self._kazoo.create_async(path, data, sequence=sequential)
        return str(self._wait(request, path))

    def _make_parents(self, path: str) -> None:
        """Create the missing parents of a path, the highest first."""
        missing = []
        parent = parent_of(path)
        while parent != ROOT and self._wait(self._kazoo.exists_async(parent), parent) is None:
            missing.append(parent)
            parent = parent_of(parent)
        for made in reversed(missing):
            try:
                self._wait(self._kazoo.create_async(made, b""), made)
            except NodeExists:
                # Another client created it meanwhile.
                continue

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version (-1: any); raises NoNode, BadVersion."""
        check_path(path)
        _check_size(path, data)
        request = self._kazoo.set_async(path, data, version)
        return stat_of(self._wait(request, path, version))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version; raises NotEmpty, BadVersion."""
        check_path(path)
        self._wait(self._kazoo.delete_async(path, version), path, version)

    def delete_tree(self, path: str) -> int:
        """Remove a node with all its descendants, children first.

        Return the number of removed nodes. Nodes that are added meanwhile are removed too. After a
        failure the remaining nodes stay.
        """
        check_path(path)
        removed = 0
        for child in self.children(path):
            try:
                removed += self.delete_tree(child.path)
            except NoNode:
                continue
        self._wait(self._kazoo.delete_async(path), path)
        return removed + 1


def _check_size(path: str, data: bytes) -> None:
    """Raise ZnodeLimitExceeded for more data than a server accepts in a request."""
    # A server closes the connection when a request is too large.
    if len(data) > ZNODE_DATA_BYTES_MAX:
        raise ZnodeLimitExceeded(path, "bytes of data", ZNODE_DATA_BYTES_MAX)
