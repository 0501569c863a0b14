"""Set ACLs on the nodes of a metadata store that were open to every client.

| node | other clients |
|---|---|
| `/` | may read it, but not create or delete children: nor delete `/controller` |
| Kafka's other nodes | have what `zookeeper.set.acl` grants |

A node is changed before its children are listed, so that no other client adds a child later. The
root is changed last: if it is protected, then every node below it is.

Source: kafka.admin.ZkSecurityMigrator.

Differs: the root is protected too; Kafka leaves it open, and its children that have no children.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from engine.host.input_file import read_input
from engine.host.real import RealClock, RealEntropy
from engine.znode.errors import NoAuth, NoNode
from engine.znode.login import read_client_login
from engine.znode.model import ANY_VERSION, OPEN_ACL
from engine.znode.names import ROOT
from engine.znode.permissions import SASL
from engine.znode.protection import protected_acl
from kctl.console import notify

if TYPE_CHECKING:
    from engine.znode.kazoo_shell import ZnodeShellSession

_OPEN: Final = list(OPEN_ACL)


def protect_nodes(address: str, settings: Mapping[str, str], timeout_s: float) -> None:
    """Set an ACL for one user on each node of a ZooKeeper store that is open to every client.

    Called once a secured cluster runs. The user is the login of the cluster's `settings`; without a
    login nothing is done. The root is protected last. Errors: ConfigError, those of the store.
    """
    # The import loads kazoo, which a cluster without a protected store does not need.
    from engine.znode.kazoo_shell import ZnodeShellSession

    login = read_client_login(settings, read_input)
    if login is None:
        return
    session = ZnodeShellSession(
        address, timeout_s, RealClock(), lambda *_: None, lambda _state: None
    )
    session.log_in_as(login, RealEntropy())
    owner = (SASL, login.username)
    with session:
        # The root is protected last: if it is, an earlier start has protected all nodes.
        if session.acl(ROOT)[0] != _OPEN:
            return
        paths = [ROOT]
        for path in paths:
            paths += _protect_and_list_children(session, path, owner)
        _protect(session, ROOT, owner)


def _protect_and_list_children(
    session: ZnodeShellSession, path: str, owner: tuple[str, str]
) -> list[str]:
    """Set the ACL of one node, unless it is the root, and return the paths of its children.

    The result is empty if the node is gone, or belongs to another user; a warning is printed in the
    latter case.
    """
    from engine.znode.kazoo_reader import child_path
    from engine.znode.node_acl import NodeRefused

    session.begin()
    try:
        if path != ROOT:
            _protect(session, path, owner)
        names, _ = session.child_names(path, watches=False)
    except NoNode:
        # Brokers and clients may delete the node at the same time.
        return []
    except NodeRefused as error:
        if error.code != NoAuth.code:
            raise
        notify(f"warning: node {path} is another user's, and stays so with all below it")
        return []
    return [child_path(path, name) for name in names]


def _protect(session: ZnodeShellSession, path: str, owner: tuple[str, str]) -> None:
    """Set a node's ACL to its owner alone if it is open to every client; raises NoNode."""
    if session.acl(path)[0] == _OPEN:
        session.set_acl(path, protected_acl(path, owner), ANY_VERSION)
