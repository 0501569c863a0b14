"""Values that go into a store and come out of it: stats, operations, events."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

#: The version that matches every version.
ANY_VERSION = -1


class NodeAclEntry(NamedTuple):
    """Permissions of one identity on a node, as bits (read 1 ... admin 16)."""

    permissions: int
    scheme: str
    id: str


#: ACL that grants every permission to everybody.
OPEN_ACL: Final = (NodeAclEntry(31, "world", "anyone"),)


class Stat(NamedTuple):
    """A node's ZooKeeper stat, without its data.

    `cversion` counts creations and removals of children, `pzxid` is the zxid of the last of them;
    `ephemeral_owner` is a session's id, or 0.
    """

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_length_bytes: int
    child_count: int
    pzxid: int
    #: Counts the changes of the ACL.
    acl_version: int = 0


class Create(NamedTuple):
    """Create a node; ten digits are appended to the path of a sequential node.

    `acl` is for a store of this process: clients of ZooKeeper derive it from the path.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[NodeAclEntry, ...] = OPEN_ACL


class SetData(NamedTuple):
    """Replace a node's data, if it has the version."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node without children, if it has the version."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Do nothing, if the node has the version."""

    path: str
    version: int


class SetAcl(NamedTuple):
    """Replace a node's ACL, if that has the version; not allowed in a multi."""

    path: str
    acl: tuple[NodeAclEntry, ...]
    version: int = ANY_VERSION


Operation: TypeAlias = Create | SetData | Delete | Check

#: Result of an operation in a multi: the created path, the node's new stat, or None.
OperationResult: TypeAlias = str | Stat | None


class WatchKind(Enum):
    """The kind of event that a one-shot watch waits for."""

    #: Creation, new data or removal of a node, which need not exist yet.
    DATA = "data"
    #: A child created or removed, or the node itself removed.
    CHILDREN = "children"


class EventType(Enum):
    """The kind of change of a node; the values are ZooKeeper's."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4
    #: These three are sent to the client that removed a watch.
    DATA_WATCH_REMOVED = 5
    CHILD_WATCH_REMOVED = 6
    PERSISTENT_WATCH_REMOVED = 7


class WatchEvent(NamedTuple):
    """The event that a watch fired for."""

    type: EventType
    path: str


class SessionEvent(Enum):
    """A change of a client's session."""

    #: A new session; nothing of an earlier one is left.
    CONNECTED = "connected"
    #: The store does not answer; the session may survive.
    SUSPENDED = "suspended"
    #: The store answers again, and the session survived.
    RECONNECTED = "reconnected"
    #: Ephemeral nodes and watches are removed.
    EXPIRED = "expired"


#: Called with each event, in order; it only notes the event and never raises.
Watcher: TypeAlias = Callable[[WatchEvent], None]
