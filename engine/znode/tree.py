"""The tree of nodes and the operations on it: pure, one transaction at a time.

A transaction changes the tree in place and notes the former nodes, so that it can be undone:

```
begin(zxid, now) ── create, set_data, delete, check ──> finish() → the changes
                                      │
                                      └── an error ───> undo()
```

Rules of ZooKeeper that are easily missed:

```
sequence number   number of children ever created in the parent, also the removed ones
cversion          2 x children ever created - children now
pzxid             last creation or removal of a child, not a change of one
refusals          removal: version before children; creation: existence before ephemeral parent
ACLs              creation and removal by that of the parent, before anything about the node
```

For a client with all permissions, such as one of this process, `identities` is None.

Source: ZooKeeper's PrepRequestProcessor, DataTree and DataNode.copyStat; invariant Z1.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from engine.limits import ZNODE_CHILDREN_MAX, ZNODE_DATA_BYTES_MAX
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NoAuth,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    ZnodeLimitExceeded,
)
from engine.znode.model import (
    ANY_VERSION,
    OPEN_ACL,
    Check,
    Create,
    Delete,
    EventType,
    NodeAclEntry,
    Operation,
    OperationResult,
    SetAcl,
    SetData,
    Stat,
    WatchEvent,
)
from engine.znode.names import ROOT, check_path, name_of, parent_of
from engine.znode.permissions import Identities, Permission, permits

K = TypeVar("K")


class Node(NamedTuple):
    """A node as it is stored, without its children, which are found by their paths."""

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    #: Number of children ever created in it.
    created_count: int
    #: The session that owns it, or 0.
    ephemeral_owner: int
    acl: tuple[NodeAclEntry, ...] = OPEN_ACL
    #: Counts the changes of the ACL.
    acl_version: int = 0


class Changes(NamedTuple):
    """The result of a transaction: nodes by path (None for removed ones), and events in order."""

    nodes: dict[str, Node | None]
    events: list[WatchEvent]


_NEW_ROOT = Node(None, 0, 0, 0, 0, 0, 0, 0, 0)


class ZnodeTree:
    """All nodes in memory."""

    def __init__(self) -> None:
        """Create with the root only."""
        self._nodes: dict[str, Node] = {ROOT: _NEW_ROOT}
        #: Names of children by path, and paths of ephemeral nodes by session: derived from
        #: `_nodes`.
        self._children: dict[str, set[str]] = {}
        self._ephemerals: dict[int, set[str]] = {}
        #: The open transaction: former nodes by path (None: absent), for `undo`, and its events.
        self._before: dict[str, Node | None] = {}
        self._events: list[WatchEvent] = []
        #: Zxid, wall time and identities of the open transaction, set by `begin`.
        self._zxid = 0
        self._now_ms = 0
        self._identities: Identities | None = None

    def load(self, path: str, node: Node) -> None:
        """Add a stored node; parents may come later."""
        self._put(path, node)

    # -- reads ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._nodes)

    def exists(self, path: str) -> bool:
        """Return True if a node exists."""
        return path in self._nodes

    def data(self, path: str) -> bytes | None:
        """Return a node's data; raises NoNode."""
        return self._find_node(path).data

    def stat(self, path: str) -> Stat:
        """Return a node's stat; raises NoNode."""
        node = self._find_node(path)
        child_count = len(self._children.get(path, ()))
        return Stat(
            czxid=node.czxid,
            mzxid=node.mzxid,
            ctime_ms=node.ctime_ms,
            mtime_ms=node.mtime_ms,
            version=node.version,
            cversion=2 * node.created_count - child_count,
            ephemeral_owner=node.ephemeral_owner,
            data_length_bytes=len(node.data or b""),
            child_count=child_count,
            pzxid=node.pzxid,
            acl_version=node.acl_version,
        )

    def acl(self, path: str) -> tuple[NodeAclEntry, ...]:
        """Return a node's ACL; raises NoNode."""
        return self._find_node(path).acl

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; raises NoNode."""
        self._find_node(path)
        return sorted(self._children.get(path, ()))

    def ephemerals(self, session_id: int) -> list[str]:
        """Return the paths of a session's nodes, sorted."""
        return sorted(self._ephemerals.get(session_id, ()))

    def orphans(self) -> list[str]:
        """Return the paths of nodes without a parent, sorted; none in an intact store."""
        return sorted(
            path for path in self._nodes if path != ROOT and parent_of(path) not in self._nodes
        )

    # -- transactions --------------------------------------------------------------------------

    def begin(self, zxid: int, now_ms: int, identities: Identities | None = None) -> None:
        """Start a transaction of a client; created and changed nodes carry this zxid and time.

        The nodes' ACLs restrict a client with `identities`; None may do anything.
        """
        assert not self._before
        self._identities = identities
        self._zxid = zxid
        self._now_ms = now_ms

    def finish(self) -> Changes:
        """End the transaction and return the nodes and events that it has changed and caused."""
        changes = Changes({path: self._nodes.get(path) for path in self._before}, self._events)
        self._before = {}
        self._events = []
        return changes

    def undo(self) -> None:
        """End the transaction as if it had never begun."""
        for path, node in self._before.items():
            self._put(path, node)
        self._before = {}
        self._events = []

    def apply(self, operation: Operation | SetAcl, session_id: int) -> OperationResult:
        """Do one operation of the transaction; if it raises a NodeError, nothing was changed."""
        if isinstance(operation, Create):
            return self._create(operation, session_id)
        check_path(operation.path)
        if isinstance(operation, SetData):
            return self._set_data(operation)
        if isinstance(operation, SetAcl):
            return self._set_acl(operation)
        if isinstance(operation, Delete):
            self._delete(operation)
        else:
            self._check_version(operation)
        return None

    def _create(self, operation: Create, session_id: int) -> str:
        """Create a node, with a sequence number if requested, and note its watch events."""
        path = operation.path
        # A sequential node's name may consist of its digits alone.
        check_path(path + "0" if operation.sequential else path)
        if path == ROOT:
            raise NodeExists(path)
        _check_data(path, operation.data)
        parent_path = parent_of(path)
        parent = self._require_permission(parent_path, Permission.CREATE)
        if operation.sequential:
            path = f"{path}{parent.created_count:010d}"
        if path in self._nodes:
            raise NodeExists(path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(path)
        if len(self._children.get(parent_path, ())) >= ZNODE_CHILDREN_MAX:
            raise ZnodeLimitExceeded(parent_path, "children", ZNODE_CHILDREN_MAX)
        zxid, now_ms = self._zxid, self._now_ms
        owner = session_id if operation.ephemeral else 0
        node = Node(operation.data, zxid, zxid, zxid, now_ms, now_ms, 0, 0, owner, operation.acl)
        self._change(path, node)
        self._change(
            parent_path,
            parent._replace(created_count=parent.created_count + 1, pzxid=zxid),
        )
        self._events.append(WatchEvent(EventType.CREATED, path))
        self._events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path))
        return path

    def _set_data(self, operation: SetData) -> Stat:
        """Set a node's data at the expected version, and note its watch event."""
        path = operation.path
        _check_data(path, operation.data)
        self._require_permission(path, Permission.WRITE)
        node = self._require_version(path, operation.version)
        self._change(
            path,
            node._replace(
                data=operation.data,
                mzxid=self._zxid,
                mtime_ms=self._now_ms,
                version=node.version + 1,
            ),
        )
        self._events.append(WatchEvent(EventType.DATA_CHANGED, path))
        return self.stat(path)

    def _delete(self, operation: Delete) -> None:
        """Delete a node without children at the expected version, and note its watch events."""
        path = operation.path
        if path == ROOT:
            raise InvalidZnodePath(path, "the root cannot be removed")
        parent_path = parent_of(path)
        if parent_path in self._nodes:
            self._require_permission(parent_path, Permission.DELETE)
        self._require_version(path, operation.version)
        if self._children.get(path):
            raise NotEmpty(path)
        self._change(path, None)
        self._change(parent_path, self._nodes[parent_path]._replace(pzxid=self._zxid))
        self._events.append(WatchEvent(EventType.DELETED, path))
        self._events.append(WatchEvent(EventType.CHILDREN_CHANGED, parent_path))

    def _set_acl(self, operation: SetAcl) -> Stat:
        """Set a node's ACL if its ACL version is the expected one, and return its stat."""
        path = operation.path
        node = self._require_permission(path, Permission.ADMIN)
        if operation.version not in (ANY_VERSION, node.acl_version):
            raise BadVersion(path, operation.version, node.acl_version)
        self._change(path, node._replace(acl=operation.acl, acl_version=node.acl_version + 1))
        return self.stat(path)

    def _check_version(self, operation: Check) -> None:
        """Raise unless the client may read the node and the node has the version."""
        self._require_permission(operation.path, Permission.READ)
        self._require_version(operation.path, operation.version)

    def _find_node(self, path: str) -> Node:
        """Return the node of a path; raise NoNode if there is none."""
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def _require_permission(self, path: str, permission: Permission) -> Node:
        """Return a node if its ACL grants the client a permission; else raise NoNode or NoAuth."""
        node = self._find_node(path)
        if not permits(node.acl, permission, self._identities):
            raise NoAuth(path)
        return node

    def _require_version(self, path: str, version: int) -> Node:
        """Return a node if it has the version, or any for -1; raise NoNode or BadVersion if not."""
        node = self._find_node(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, version, node.version)
        return node

    def _change(self, path: str, node: Node | None) -> None:
        """Put or remove a node, and keep its state before the transaction for `undo`."""
        self._before.setdefault(path, self._nodes.get(path))
        self._put(path, node)

    def _put(self, path: str, node: Node | None) -> None:
        """Set or remove (None) a node, with its entries in the indexes of children and owners."""
        old = self._nodes.get(path)
        if old is not None and old.ephemeral_owner:
            _discard(self._ephemerals, old.ephemeral_owner, path)
        if node is None:
            if old is not None:
                del self._nodes[path]
                _discard(self._children, parent_of(path), name_of(path))
            return
        self._nodes[path] = node
        if path != ROOT:
            self._children.setdefault(parent_of(path), set()).add(name_of(path))
        if node.ephemeral_owner:
            self._ephemerals.setdefault(node.ephemeral_owner, set()).add(path)


def _check_data(path: str, data: bytes | None) -> None:
    """Raise ZnodeLimitExceeded for more data than ZooKeeper allows in a node."""
    if data is not None and len(data) > ZNODE_DATA_BYTES_MAX:
        raise ZnodeLimitExceeded(path, "bytes of data", ZNODE_DATA_BYTES_MAX)


def _discard(sets: dict[K, set[str]], key: K, member: str) -> None:
    """Remove a member from the set of a key, and the key with its last member."""
    members = sets.get(key)
    if members is None:
        return
    members.discard(member)
    if not members:
        del sets[key]
