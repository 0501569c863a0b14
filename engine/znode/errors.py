"""The errors of a store that refuses an operation, with ZooKeeper's code for each.

```
ZnodeError
├─ NoNode                    -101
├─ BadVersion                -103
├─ NoChildrenForEphemerals   -108
├─ NodeExists                -110
├─ NotEmpty                  -111
├─ SessionExpired            -112
├─ InvalidZnodePath            -8   BADARGUMENTS
├─ ZnodeLimitExceeded          -8
└─ ConnectionLost              -4
StorageError
└─ ZnodeStoreFailed            -1   SYSTEMERROR: the journal cannot be written or read
   └─ ZnodeStoreDamaged             its file is corrupt
```

Source: org.apache.zookeeper.KeeperException.Code.
"""

from __future__ import annotations

from typing import ClassVar

from engine.errors import StorageError, ZnodeError

#: The exit codes of commands for an impossible argument, and for a store that does not respond.
_USAGE_EXIT = 2
_UNREACHABLE_EXIT = 3


class NodeError(ZnodeError):
    """An operation on one path was refused."""

    #: ZooKeeper's code of the error.
    code: ClassVar[int]
    #: Which operation of a multi was refused; None outside of a multi.
    operation_index: int | None = None

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NoNode(NodeError):
    """The node, or the parent of a node to create, does not exist."""

    code = -101

    def __init__(self, path: str) -> None:
        super().__init__(path, "no such node")


class BadVersion(NodeError):
    """The node has another version than the expected one; `got` is negative if unknown."""

    code = -103

    def __init__(self, path: str, expected: int, got: int) -> None:
        other = f"got {got}" if got >= 0 else "it has another one"
        super().__init__(path, f"expected version {expected}, {other}")
        self.expected = expected
        self.got = got


class NoChildrenForEphemerals(NodeError):
    """An ephemeral node cannot be a parent."""

    code = -108

    def __init__(self, path: str) -> None:
        super().__init__(path, "the parent is ephemeral")


class NodeExists(NodeError):
    """A node to create exists already."""

    code = -110

    def __init__(self, path: str) -> None:
        super().__init__(path, "the node exists")


class NotEmpty(NodeError):
    """A node to delete has children."""

    code = -111

    def __init__(self, path: str) -> None:
        super().__init__(path, "the node has children")


class NoAuth(NodeError):
    """The ACL of a node does not permit the operation to the client."""

    code = -102

    def __init__(self, path: str) -> None:
        super().__init__(path, "the node's ACL does not allow it")


class InvalidAcl(NodeError):
    """An ACL is empty, or has an entry that no client can match."""

    code = -114

    def __init__(self, path: str) -> None:
        super().__init__(path, "no valid ACL")


class InvalidZnodePath(NodeError):
    """A path breaks ZooKeeper's rules."""

    code = -8
    exit_code = _USAGE_EXIT


class ZnodeLimitExceeded(NodeError):
    """A change would exceed a limit of the store."""

    code = -8

    def __init__(self, path: str, what: str, limit: int) -> None:
        super().__init__(path, f"more than {limit} {what}")
        self.what = what
        self.limit = limit


class SessionExpired(ZnodeError):
    """The session is over: its ephemeral nodes and watches are removed."""

    code: ClassVar[int] = -112

    def __init__(self, session_id: int) -> None:
        super().__init__(f"session 0x{session_id:x} has expired or was closed")
        self.session_id = session_id


class ZnodeConnectionLost(ZnodeError):
    """No response came: the operation may or may not have been executed."""

    code: ClassVar[int] = -4
    exit_code = _UNREACHABLE_EXIT
    hint = "check that ZooKeeper runs, and its address and port"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the metadata store does not answer: {reason}")
        self.reason = reason


class ZnodeLoginRefused(ZnodeError):
    """A server rejects the client's name and password, or requires them."""

    code: ClassVar[int] = -115
    exit_code = _UNREACHABLE_EXIT
    hint = "check the section Client of the JAAS file, and the users in Server of the server's"

    def __init__(self, username: str, address: str) -> None:
        super().__init__(f"no server of {address} takes the login of {username}")
        self.username = username


class ZnodeStoreFailed(StorageError):
    """The journal of an embedded store cannot be used; nothing more is accepted (D20)."""

    code: ClassVar[int] = -1

    def __init__(self, path: str, operation: str, reason: str) -> None:
        super().__init__(f"{path}: cannot {operation}: {reason}")
        self.path = path
        self.operation = operation
        self.reason = reason


class ZnodeStoreDamaged(ZnodeStoreFailed):
    """The file of an embedded store exists, but is corrupt or not a store's."""
