"""ZooKeeper's encoding (jute): numbers are big-endian, lengths and counts are int32.

```
int, long    4, 8 bytes             bool     1 byte, 0 is false
buffer       length, bytes          ustring  length, UTF-8       length −1 is null
vector<T>    count, elements        count −1 is null, read as empty
Stat         czxid q, mzxid q, ctime q, mtime q, version i, cversion i, aversion i,
             ephemeralOwner q, dataLength i, numChildren i, pzxid q
ACL          perms i, scheme ustring, id ustring
```

Source: zookeeper.jute; BinaryInputArchive.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar

from engine.errors import WireError
from engine.znode.model import NodeAclEntry, Stat

T = TypeVar("T")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_STAT = struct.Struct(">qqqqiiiqiiq")
_NULL = _INT.pack(-1)
_INT_SPAN = 1 << 32
_INT_MAX = (1 << 31) - 1


class BadZookeeperFrame(WireError):
    """A client's bytes do not follow ZooKeeper's protocol; `position` is where in the frame."""

    def __init__(self, expected: str, got: object, position: int) -> None:
        super().__init__(f"at byte {position} of a frame: expected {expected}, got {got}")
        self.expected = expected
        self.got = got
        self.position = position


class RecordReader:
    """Reads the values of a frame in order; all methods raise BadZookeeperFrame."""

    __slots__ = ("_data", "_position")

    def __init__(self, frame: memoryview) -> None:
        self._data = frame
        self._position = 0

    @property
    def left_bytes(self) -> int:
        """Return the number of bytes that were not read yet."""
        return len(self._data) - self._position

    def int32(self) -> int:
        """Read and return an int of 4 bytes."""
        start = self._advance(4)
        (number,) = _INT.unpack_from(self._data, start)
        return int(number)

    def int64(self) -> int:
        """Read and return a long of 8 bytes."""
        start = self._advance(8)
        (number,) = _LONG.unpack_from(self._data, start)
        return int(number)

    def boolean(self) -> bool:
        """Read and return a bool of one byte."""
        return self._data[self._advance(1)] != 0

    def buffer(self) -> bytes | None:
        """Read a buffer of jute, None for null; raises BadZookeeperFrame for a wrong length."""
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= self.left_bytes:
            raise BadZookeeperFrame(f"at most {self.left_bytes} bytes", length, self._position - 4)
        start = self._advance(length)
        return bytes(self._data[start : start + length])

    def text(self) -> str:
        """Read a string of jute; raises BadZookeeperFrame for null and for invalid UTF-8."""
        start = self._position
        data = self.buffer()
        try:
            if data is not None:
                return data.decode()
        except UnicodeDecodeError as error:
            raise BadZookeeperFrame("UTF-8", str(error), start) from error
        raise BadZookeeperFrame("a text", "null", start)

    def vector(self, element: Callable[[], T], element_bytes_min: int) -> list[T]:
        """Read a vector of jute, whose elements take `element_bytes_min` each; null is empty.

        The minimum bounds the count before any element is read. Raises BadZookeeperFrame.
        """
        count = self.int32()
        if count == -1:
            return []
        most = self.left_bytes // element_bytes_min
        if not 0 <= count <= most:
            raise BadZookeeperFrame(f"at most {most} elements", count, self._position - 4)
        return [element() for _ in range(count)]

    def texts(self) -> list[str]:
        """Read and return a vector of ustrings."""
        return self.vector(self.text, 4)

    def acls(self) -> list[NodeAclEntry]:
        """Read and return a vector of ACL entries."""
        return self.vector(self._read_acl, 12)

    def _read_acl(self) -> NodeAclEntry:
        """Read one ACL entry: permissions, scheme, id."""
        return NodeAclEntry(self.int32(), self._read_text_or_null(), self._read_text_or_null())

    def _read_text_or_null(self) -> str:
        """Read and return a ustring; empty for null, which kazoo sends for an empty text."""
        start = self._position
        if self.int32() == -1:
            return ""
        self._position = start
        return self.text()

    def _advance(self, length: int) -> int:
        """Consume `length` bytes; return their position, or raise BadZookeeperFrame."""
        start = self._position
        if length > len(self._data) - start:
            raise BadZookeeperFrame(f"{length} bytes", f"{len(self._data) - start}", start)
        self._position = start + length
        return start


def pack_int(value: int) -> bytes:
    """Encode an int of 4 bytes."""
    return _INT.pack(value)


def pack_buffer(data: bytes | None) -> bytes:
    """Encode bytes as a buffer of jute, after their length; null for None."""
    return _NULL if data is None else _INT.pack(len(data)) + data


def pack_text(text: str) -> bytes:
    """Encode a text as a ustring of jute, in UTF-8 after its length."""
    return pack_buffer(text.encode())


def pack_texts(texts: Iterable[str]) -> bytes:
    """Encode a vector of ustrings."""
    parts = [pack_text(text) for text in texts]
    return _INT.pack(len(parts)) + b"".join(parts)


def pack_acls(acls: Iterable[NodeAclEntry]) -> bytes:
    """Encode ACL entries as a vector of jute."""
    parts = [_INT.pack(a.permissions) + pack_text(a.scheme) + pack_text(a.id) for a in acls]
    return _INT.pack(len(parts)) + b"".join(parts)


def pack_stat(stat: Stat) -> bytes:
    """Encode a Stat; counters beyond an int become negative, as ZooKeeper's do."""
    return _STAT.pack(
        stat.czxid,
        stat.mzxid,
        stat.ctime_ms,
        stat.mtime_ms,
        _wrapped(stat.version),
        _wrapped(stat.cversion),
        _wrapped(stat.acl_version),
        stat.ephemeral_owner,
        stat.data_length_bytes,
        stat.child_count,
        stat.pzxid,
    )


def _wrapped(value: int) -> int:
    """Return a counter as Java's int has it, negative after an overflow."""
    value %= _INT_SPAN
    return value - _INT_SPAN if value > _INT_MAX else value
