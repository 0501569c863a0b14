"""Kazoo's exceptions as errors of the engine.

| kazoo | ours |
|---|---|
| NoNode, BadVersion, NodeExists, NotEmpty, NoChildrenForEphemerals | the same |
| BadArguments | InvalidZnodePath |
| SessionExpired, ConnectionClosed | SessionExpired |
| ConnectionLoss, OperationTimeout, no answer in time | ConnectionLost |
| any other of ZooKeeper's codes | RequestRefused with the code |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kazoo import exceptions
from kazoo.handlers.threading import KazooTimeoutError

from engine.errors import ZnodeError
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NoChildrenForEphemerals,
    NodeError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZnodeConnectionLost,
)
from engine.znode.model import ANY_VERSION, Create, Operation
from engine.znode.zookeeper_wire import RUNTIME_INCONSISTENCY, RequestRefused

_UNKNOWN_VERSION = -1
_OF_PATHS: dict[type[Exception], Callable[[str], NodeError]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
}
_LOST = (
    exceptions.ConnectionLoss,
    exceptions.OperationTimeoutError,
    exceptions.ConnectionDropped,
    KazooTimeoutError,
)


def engine_error(error: Exception, path: str, version: int, session_id: int) -> ZnodeError:
    """Return the engine's error for kazoo's exception at an operation on a path.

    `version` is the version that the operation required.
    """
    of_path = _OF_PATHS.get(type(error))
    if of_path is not None:
        return of_path(path)
    if isinstance(error, exceptions.BadVersionError):
        return BadVersion(path, version, _UNKNOWN_VERSION)
    if isinstance(error, exceptions.BadArgumentsError):
        return InvalidZnodePath(path, "refused by the server")
    if isinstance(error, exceptions.SessionExpiredError):
        return SessionExpired(session_id)
    if isinstance(error, _LOST):
        return ZnodeConnectionLost(str(error) or type(error).__name__)
    code = getattr(error, "code", -1)
    return RequestRefused(code, f"{path}: {type(error).__name__} ({code})")


def refusal_of_multi(
    results: Sequence[object], operations: Sequence[Operation]
) -> ZnodeError | None:
    """Return the error of the refused operation of a multi; None if none was refused.

    `results` are kazoo's, one for each operation; the error has the operation's index.
    """
    for index, (result, operation) in enumerate(zip(results, operations, strict=True)):
        if not isinstance(result, Exception):
            continue
        if getattr(result, "code", 0) in (0, RUNTIME_INCONSISTENCY):
            continue
        version = ANY_VERSION if isinstance(operation, Create) else operation.version
        error = engine_error(result, operation.path, version, 0)
        if isinstance(error, NodeError):
            error.operation_index = index
        return error
    return None
