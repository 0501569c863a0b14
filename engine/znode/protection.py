"""ACLs for the nodes of a protected cluster (`zookeeper.set.acl`).

| node | its creator | everybody |
|---|---|---|
| `/consumers` | all | all |
| paths that begin `/config/users`, `/config/brokers`, `/delegation_token/tokens` | all | nothing |
| all others | all | read |

Source: kafka.zk.ZkData.defaultAcls, SensitiveRootPaths; Z5.
"""

from __future__ import annotations

from typing import Final

from engine.znode.model import OPEN_ACL, Create, NodeAclEntry, Operation

_ALL: Final = 31
_READ: Final = 1
_ANYONE: Final = ("world", "anyone")
#: The identities of the node's creator, which the server fills in.
CREATOR: Final = ("auth", "")
_OPEN_PATH: Final = "/consumers"
_SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")


def protected_acl(path: str, creator: tuple[str, str] = CREATOR) -> tuple[NodeAclEntry, ...]:
    """Return the ACL that Kafka gives a node of a cluster with zookeeper.set.acl.

    All permissions for `creator`; others may read the node, unless it has secrets.
    """
    if path == _OPEN_PATH:
        return OPEN_ACL
    own = NodeAclEntry(_ALL, *creator)
    if path.startswith(_SENSITIVE):
        return (own,)
    return own, NodeAclEntry(_READ, *_ANYONE)


def protected(operation: Operation, creator: tuple[str, str] | None) -> Operation:
    """Return an operation; for a creation, with the ACL that a protected cluster gives the node.

    Unchanged if `creator`, the identity of the brokers, is None.
    """
    if creator is None or not isinstance(operation, Create):
        return operation
    return operation._replace(acl=protected_acl(operation.path, creator))
