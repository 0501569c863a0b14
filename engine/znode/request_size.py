"""The size of a write on the wire to a ZooKeeper, which closes the connection at too large a frame.

```
multi = header per operation, path, data, ACL, flags ... ; length prefixes of four bytes
```

Source: jute.maxbuffer, 1,048,575 bytes by default, checked by NIOServerCnxn for each frame.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.znode.model import Create, Operation, SetData

#: Header, length prefixes, the ACL of everyone, flags and version of one operation of a multi.
_OPERATION_BYTES = 64


def operation_bytes(operation: Operation) -> int:
    """Return the most bytes that an operation takes in a request, without a chroot."""
    data = operation.data if isinstance(operation, Create | SetData) else None
    return _OPERATION_BYTES + len(operation.path.encode()) + len(data or b"")


def request_bytes(operations: Iterable[Operation]) -> int:
    """Return the most bytes that a request with these operations takes, without a chroot."""
    return sum(map(operation_bytes, operations))
