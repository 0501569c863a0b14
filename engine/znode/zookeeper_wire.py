"""The frames between ZooKeeper's clients and servers. Pure.

Each frame follows its length (int32), which the network adds and removes.

```
first request   protocolVersion i, lastZxidSeen q, timeOut i, sessionId q, passwd buffer
                [, readOnly bool]           a new session has the id 0
first response  protocolVersion i, timeOut i, sessionId q, passwd buffer [, readOnly bool]
                timeOut 0: the session is over
request         xid i, type i, body         xid −2 ping, −4 auth, −8 watches set again
response        xid i, zxid q, err i, body if err is 0
notification    −1 i, −1 q, 0 i, type i, state i, path
multi           (type i, done bool = 0, err i = −1, operation)*, −1, 1, −1
  its response  (type i, 0, err i, result)*, −1, 1, −1        type −1: only err i again
```

The types that are served, with their bodies, are the table at the end.

Source: zookeeper.jute, ZooDefs.OpCode, MultiOperationRecord and MultiResponse of ZooKeeper 3.8.
Differs: creating containers and nodes with a TTL is refused: UNIMPLEMENTED (−6).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from engine.errors import ZnodeError
from engine.limits import ZNODE_MULTI_OPERATIONS_MAX
from engine.znode.model import (
    Check,
    Create,
    Delete,
    Operation,
    SetAcl,
    SetData,
    WatchEvent,
)
from engine.znode.zookeeper_records import (
    BadZookeeperFrame,
    RecordReader,
    pack_buffer,
    pack_int,
    pack_text,
)


class OpCode(IntEnum):
    """The types of requests that are served."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE_SESSION = -11


#: Type of an error among the results of a multi.
ERROR_RESULT = -1
#: Code of the operations of a multi after the refused one.
RUNTIME_INCONSISTENCY = -2
PASSWORD_BYTES = 16

_NOTIFICATION_XID = -1
_CONNECTED = 3
_EPHEMERAL = 1
_SEQUENTIAL = 2
_RESPONSE = struct.Struct(">iqi")
_MULTI_HEADER = struct.Struct(">i?i")
_MULTI_END = _MULTI_HEADER.pack(-1, True, -1)


class RequestRefused(ZnodeError):
    """A request is understood but not executed; `code` is ZooKeeper's."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def not_implemented(type_: int) -> RequestRefused:
    """Return the error of a request that is not served."""
    return RequestRefused(-6, f"requests of type {type_} are not served")


class ConnectRequest(NamedTuple):
    """The first request of a client."""

    last_zxid: int
    timeout_ms: int
    #: 0 for a new session.
    session_id: int
    password: bytes
    #: Whether the client knows of servers that only read (since 3.4).
    knows_read_only: bool


class PathRequest(NamedTuple):
    """A request about one node."""

    path: str


class WatchedRead(NamedTuple):
    """A read that may set a watch."""

    path: str
    watch: bool


class CreateRequest(NamedTuple):
    """A creation; one with a `refusal` fails with it when it is executed."""

    operation: Create
    refusal: RequestRefused | None


class MultiRequest(NamedTuple):
    """Operations that are executed in one transaction."""

    operations: list[CreateRequest | Delete | SetData | Check]


class MultiReadRequest(NamedTuple):
    """Reads (GET_DATA, GET_CHILDREN) with one response."""

    reads: list[tuple[OpCode, str]]


class SetWatchesRequest(NamedTuple):
    """The watches of a client that reconnected, and the last zxid that it has seen."""

    seen_zxid: int
    data: list[str]
    exists: list[str]
    children: list[str]
    persistent: list[str]
    recursive: list[str]


class AddWatchRequest(NamedTuple):
    """A persistent watch; mode 0 is for one node, 1 also for its descendants."""

    path: str
    mode: int


class WatchesRequest(NamedTuple):
    """Watches of a node to check or remove; type 1 is for children, 2 for data, 3 for both."""

    path: str
    type: int


class AuthRequest(NamedTuple):
    """The identity of a client, by a scheme; its proof never shows in a repr."""

    scheme: str
    proof: bytes

    def __repr__(self) -> str:
        return f"AuthRequest({self.scheme})"


class SaslRequest(NamedTuple):
    """A SASL token."""

    token: bytes


Body: TypeAlias = (
    PathRequest
    | WatchedRead
    | CreateRequest
    | Delete
    | SetData
    | SetAcl
    | MultiRequest
    | MultiReadRequest
    | SetWatchesRequest
    | AddWatchRequest
    | WatchesRequest
    | AuthRequest
    | SaslRequest
    | None
)


class Request(NamedTuple):
    """One request of an open session; its body is None for a type that is not served."""

    xid: int
    type: int
    body: Body


# -- requests ------------------------------------------------------------------------------------


def read_connect(frame: memoryview) -> ConnectRequest:
    """Return the connect request in a client's first frame; raises BadZookeeperFrame."""
    reader = RecordReader(frame)
    reader.int32()
    request = ConnectRequest(
        reader.int64(), reader.int32(), reader.int64(), reader.buffer() or b"", False
    )
    return request._replace(knows_read_only=True) if reader.left_bytes else request


def read_request(frame: memoryview) -> Request:
    """Return the request in a later frame; raises BadZookeeperFrame."""
    reader = RecordReader(frame)
    xid, type_ = reader.int32(), reader.int32()
    read_body = _BODIES.get(type_)
    return Request(xid, type_, None if read_body is None else read_body(reader))


def _read_nothing(_reader: RecordReader) -> None:
    """Read no body: the request has none, or none that is used."""


def _read_path(reader: RecordReader) -> PathRequest:
    """Read the path of a request about one node."""
    return PathRequest(reader.text())


def _read_watched(reader: RecordReader) -> WatchedRead:
    """Read the path of a node, and whether the read sets a watch."""
    return WatchedRead(reader.text(), reader.boolean())


def _read_create(reader: RecordReader) -> CreateRequest:
    """Read a create request; container and TTL nodes carry the refusal to send."""
    path, data = reader.text(), reader.buffer()
    acl, flags = reader.acls(), reader.int32()
    refusal = None
    if flags & ~(_EPHEMERAL | _SEQUENTIAL):
        refusal = RequestRefused(-8, f"{path}: nodes of kind {flags} are not served")
    operation = Create(path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL), tuple(acl))
    return CreateRequest(operation, refusal)


def _read_delete(reader: RecordReader) -> Delete:
    """Read the path and the version of a node to delete."""
    return Delete(reader.text(), reader.int32())


def _read_set_data(reader: RecordReader) -> SetData:
    """Read the path, the data and the expected version of a node."""
    return SetData(reader.text(), reader.buffer(), reader.int32())


def _read_check(reader: RecordReader) -> Check:
    """Read the path and the version that a multi requires of a node."""
    return Check(reader.text(), reader.int32())


def _read_set_acl(reader: RecordReader) -> SetAcl:
    """Read the path, the ACL and the expected ACL version of a node."""
    return SetAcl(reader.text(), tuple(reader.acls()), reader.int32())


def _read_set_watches(reader: RecordReader) -> SetWatchesRequest:
    """Read the last zxid seen, and the paths of data, exists and child watches."""
    return SetWatchesRequest(reader.int64(), reader.texts(), reader.texts(), reader.texts(), [], [])


def _read_set_watches_2(reader: RecordReader) -> SetWatchesRequest:
    """Read the same as of SetWatches, then the paths of persistent and recursive watches."""
    watches = _read_set_watches(reader)
    return watches._replace(persistent=reader.texts(), recursive=reader.texts())


def _read_add_watch(reader: RecordReader) -> AddWatchRequest:
    """Read the path and the mode of a watch to add."""
    return AddWatchRequest(reader.text(), reader.int32())


def _read_watches(reader: RecordReader) -> WatchesRequest:
    """Read the path and the type of watches to check or remove."""
    return WatchesRequest(reader.text(), reader.int32())


def _read_auth(reader: RecordReader) -> AuthRequest:
    """Read a scheme and a proof; the type before them has no meaning."""
    reader.int32()
    return AuthRequest(reader.text(), reader.buffer() or b"")


def _read_sasl(reader: RecordReader) -> SaslRequest:
    """Read a SASL token; null is empty."""
    return SaslRequest(reader.buffer() or b"")


def _read_multi_type(reader: RecordReader) -> int | None:
    """Read the header before an operation of a multi; return its type, None at the end."""
    type_, done = reader.int32(), reader.boolean()
    reader.int32()
    return None if done else type_


def _read_multi(reader: RecordReader) -> MultiRequest:
    """Read the operations of a multi; raise BadZookeeperFrame for an unknown type."""
    operations = []
    while (type_ := _read_multi_type(reader)) is not None:
        read_operation = _OPERATIONS.get(type_)
        if read_operation is None:
            raise BadZookeeperFrame("an operation of a multi", type_, 0)
        operations.append(read_operation(reader))
        _check_count(len(operations))
    return MultiRequest(operations)


def _read_multi_read(reader: RecordReader) -> MultiReadRequest:
    """Read the reads of a multi-read: data and children only."""
    reads = []
    while (type_ := _read_multi_type(reader)) is not None:
        if type_ not in (OpCode.GET_DATA, OpCode.GET_CHILDREN):
            raise BadZookeeperFrame("a read of a multi", type_, 0)
        read = _read_watched(reader)
        reads.append((OpCode(type_), read.path))
        _check_count(len(reads))
    return MultiReadRequest(reads)


def _check_count(count: int) -> None:
    """Raise BadZookeeperFrame as soon as a multi has too many operations."""
    if count > ZNODE_MULTI_OPERATIONS_MAX:
        raise BadZookeeperFrame(f"at most {ZNODE_MULTI_OPERATIONS_MAX} operations", "more", 0)


_OPERATIONS: dict[int, Callable[[RecordReader], CreateRequest | Delete | SetData | Check]] = {
    OpCode.CREATE: _read_create,
    OpCode.DELETE: _read_delete,
    OpCode.SET_DATA: _read_set_data,
    OpCode.CHECK: _read_check,
}

_BODIES: dict[int, Callable[[RecordReader], Body]] = {
    OpCode.CREATE: _read_create,
    OpCode.DELETE: _read_delete,
    OpCode.EXISTS: _read_watched,
    OpCode.GET_DATA: _read_watched,
    OpCode.SET_DATA: _read_set_data,
    OpCode.GET_ACL: _read_path,
    OpCode.SET_ACL: _read_set_acl,
    OpCode.GET_CHILDREN: _read_watched,
    OpCode.SYNC: _read_path,
    OpCode.PING: _read_nothing,
    OpCode.GET_CHILDREN_2: _read_watched,
    OpCode.MULTI: _read_multi,
    OpCode.CREATE_2: _read_create,
    OpCode.RECONFIG: _read_nothing,
    OpCode.CHECK_WATCHES: _read_watches,
    OpCode.REMOVE_WATCHES: _read_watches,
    OpCode.MULTI_READ: _read_multi_read,
    OpCode.AUTH: _read_auth,
    OpCode.SET_WATCHES: _read_set_watches,
    OpCode.SASL: _read_sasl,
    OpCode.GET_EPHEMERALS: _read_path,
    OpCode.SET_WATCHES_2: _read_set_watches_2,
    OpCode.ADD_WATCH: _read_add_watch,
    OpCode.WHO_AM_I: _read_nothing,
    OpCode.CLOSE_SESSION: _read_nothing,
}


def operation_of(body: CreateRequest | Delete | SetData | Check) -> Operation:
    """Return the store's operation for a request; raises RequestRefused for an invalid creation."""
    if not isinstance(body, CreateRequest):
        return body
    if body.refusal is not None:
        raise body.refusal
    return body.operation


def op_code_of(operation: Operation) -> OpCode:
    """Return the type of an operation of a multi, as its response names it."""
    if isinstance(operation, Create):
        return OpCode.CREATE
    if isinstance(operation, SetData):
        return OpCode.SET_DATA
    return OpCode.DELETE if isinstance(operation, Delete) else OpCode.CHECK


# -- responses -----------------------------------------------------------------------------------


def connect_response(
    request: ConnectRequest, timeout_ms: int, session_id: int, key: bytes
) -> bytes:
    """Return the response to a client's first frame, with the password of the session."""
    response = struct.pack(">iiq", 0, timeout_ms, session_id) + pack_buffer(key)
    return response + b"\0" if request.knows_read_only else response


def session_over_response(request: ConnectRequest) -> bytes:
    """Return the response to a client whose session is over, or never was."""
    return connect_response(request, 0, 0, bytes(PASSWORD_BYTES))


def response_head(xid: int, zxid: int, error_code: int = 0) -> bytes:
    """Return the bytes before a response's body: the request's xid, the zxid, an error code."""
    return _RESPONSE.pack(xid, zxid, error_code)


def notification(event: WatchEvent) -> bytes:
    """Return the frame that notifies a client of the event of a watch."""
    head = _RESPONSE.pack(_NOTIFICATION_XID, -1, 0)
    return head + struct.pack(">ii", event.type.value, _CONNECTED) + pack_text(event.path)


def multi_response(results: list[tuple[OpCode, bytes] | int]) -> bytes:
    """Return the body of a multi's response: for each operation its result, or an error's code."""
    parts = []
    for result in results:
        if isinstance(result, int):
            parts.append(_MULTI_HEADER.pack(ERROR_RESULT, False, result) + pack_int(result))
        else:
            type_, body = result
            parts.append(_MULTI_HEADER.pack(type_, False, 0) + body)
    return b"".join(parts) + _MULTI_END
