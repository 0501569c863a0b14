"""Error messages of ZooKeeper's shell.

Source: CliWrapperException and KeeperException of ZooKeeper 3.8.
"""

from __future__ import annotations

from typing import Final

from engine.errors import EngineError
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZnodeConnectionLost,
)
from engine.znode.zookeeper_wire import RequestRefused

#: ZooKeeper's code of an invalid ACL.
INVALID_ACL: Final = -114
_NO_AUTH: Final = -102
_QUOTA_EXCEEDED: Final = -125
_RECONFIG_DISABLED: Final = -123
#: Texts that the shell prints before the path of a refused operation.
_FAILURES: Final[dict[type[EngineError], str]] = {
    NoNode: "Node does not exist: ",
    NodeExists: "Node already exists: ",
    NotEmpty: "Node not empty: ",
    BadVersion: "version No is not valid : ",
    NoChildrenForEphemerals: "Ephemerals cannot have children: ",
    InvalidZnodePath: "Arguments are not valid : ",
}
_CODES: Final = {
    _NO_AUTH: "Insufficient permission : ",
    INVALID_ACL: "Acl is not valid : ",
    _QUOTA_EXCEEDED: "Quota has exceeded : ",
}
#: Errors of a new configuration, which are printed without a path.
_OF_SERVERS: Final = {
    -13: "No quorum of new config is connected and up-to-date with the leader of last commmitted "
    "config - try invoking reconfiguration after new servers are connected and synced",
    -14: "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)",
}
#: KeeperException's error names by code.
_NAMES: Final[dict[int, str]] = {
    -5: "MarshallingError",
    -6: "Unimplemented",
    -7: "OperationTimeout",
    -8: "BadArguments",
    -101: "NoNode",
    _NO_AUTH: "NoAuth",
    -103: "BadVersion",
    INVALID_ACL: "InvalidACL",
    -115: "AuthFailed",
    -118: "Session moved",
    -119: "Not a read-only call",
    -121: "No such watcher",
    _RECONFIG_DISABLED: "Reconfig is disabled",
    _QUOTA_EXCEEDED: "Quota has exceeded",
}


def shell_error_text(error: EngineError, path: str) -> str:
    """Return the message with which zookeeper-shell prints an error.

    `path` is used if the error has no path itself.
    """
    path = getattr(error, "path", path)
    if isinstance(error, RequestRefused) and error.code in _OF_SERVERS:
        return _OF_SERVERS[error.code]
    if isinstance(error, RequestRefused) and error.code in _CODES:
        return f"{_CODES[error.code]}{path or 'null'}"
    prefix = _FAILURES.get(type(error))
    return key_error_text(error, path) if prefix is None else f"{prefix}{path}"


def key_error_text(error: EngineError, path: str) -> str:
    """Return the message of ZooKeeper's KeeperException, else the error's own message."""
    if isinstance(error, ZnodeConnectionLost):
        return f"KeeperErrorCode = ConnectionLoss for {path}"
    if isinstance(error, SessionExpired):
        return f"KeeperErrorCode = Session expired for {path}"
    name = _NAMES.get(getattr(error, "code", 0))
    if name is None:
        return str(error)
    return f"KeeperErrorCode = {name} for {path}" if path else f"KeeperErrorCode = {name}"
