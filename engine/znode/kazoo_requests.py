"""ZooKeeper's requests that kazoo lacks: containers, nodes with a TTL, counts, persistent watches.

Source: zookeeper.jute and ZooDefs.OpCode of ZooKeeper 3.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kazoo.protocol.serialization import (
    Create,
    int_struct,
    long_struct,
    read_string,
)
from kazoo.security import ACL

_CREATE_CONTAINER: Final = 19
_CREATE_TTL: Final = 21
_GET_ALL_CHILDREN_NUMBER: Final = 104
_REMOVE_WATCHES: Final = 18
_ADD_WATCH: Final = 106
_WHO_AM_I: Final = 107
#: Bits of CreateMode.
_CONTAINER: Final = 4
_TTL: Final = 5
_TTL_SEQUENTIAL: Final = 6


class CreateContainer(NamedTuple):
    """Create a node that the server deletes after its last child; the response is its path."""

    path: str
    data: bytes | None
    acl: Sequence[ACL]
    type: int = _CREATE_CONTAINER

    def serialize(self) -> bytes:
        """Return the body of the request."""
        return bytes(Create(self.path, self.data, self.acl, _CONTAINER).serialize())

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> str:
        """Return the path of the created node from a response.

        Its stat, which follows, is not read.
        """
        return str(read_string(data, offset)[0])


class CreateWithTimeToLive(NamedTuple):
    """Create a node that the server deletes after a time without changes and children."""

    path: str
    data: bytes | None
    acl: Sequence[ACL]
    is_sequential: bool
    ttl_ms: int
    type: int = _CREATE_TTL

    def serialize(self) -> bytes:
        """Return the body of the request."""
        mode = _TTL_SEQUENTIAL if self.is_sequential else _TTL
        create = Create(self.path, self.data, self.acl, mode).serialize()
        return bytes(create + long_struct.pack(self.ttl_ms))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> str:
        """Return the path of the created node from a response.

        Its stat, which follows, is not read.
        """
        return str(read_string(data, offset)[0])


class GetAllChildrenNumber(NamedTuple):
    """Count the descendants of a node; only the node itself has to be readable."""

    path: str
    type: int = _GET_ALL_CHILDREN_NUMBER

    def serialize(self) -> bytes:
        """Return the body of the request."""
        encoded = self.path.encode()
        return bytes(int_struct.pack(len(encoded))) + encoded

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> int:
        """Return the number of descendants from a response."""
        (number,) = int_struct.unpack_from(data, offset)
        return int(number)


class AddWatch(NamedTuple):
    """Set a persistent watch; mode 0 is for one node, mode 1 also for all its descendants."""

    path: str
    mode: int
    type: int = _ADD_WATCH

    def serialize(self) -> bytes:
        """Return the body of the request."""
        encoded = self.path.encode()
        return bytes(int_struct.pack(len(encoded)) + encoded + int_struct.pack(self.mode))

    @classmethod
    def deserialize(cls, _data: bytes, _offset: int) -> None:
        """Return None: a response has only the error code of its header."""


class RemoveWatches(NamedTuple):
    """Remove the watches of a node: of children (1), of data (2), or all (3)."""

    path: str
    kind: int
    type: int = _REMOVE_WATCHES

    def serialize(self) -> bytes:
        """Return the body of the request."""
        encoded = self.path.encode()
        return bytes(int_struct.pack(len(encoded)) + encoded + int_struct.pack(self.kind))

    @classmethod
    def deserialize(cls, _data: bytes, _offset: int) -> None:
        """Return None: a response has only the error code of its header."""


class WhoAmI(NamedTuple):
    """The request for the identities of this client at the server."""

    type: int = _WHO_AM_I

    def serialize(self) -> bytes:
        """Return the body of the request, which is empty."""
        return b""

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[tuple[str, str]]:
        """Return the (scheme, user) of each identity from a response."""
        (count,) = int_struct.unpack_from(data, offset)
        offset += int_struct.size
        found = []
        for _ in range(count):
            scheme, offset = read_string(data, offset)
            user, offset = read_string(data, offset)
            found.append((str(scheme), str(user)))
        return found
