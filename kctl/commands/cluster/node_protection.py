"""Gives the nodes of a metadata store that was open to its brokers alone.

| node | everybody else |
|---|---|
| `/` | reads, and makes and removes nothing in it: neither does anybody remove `/controller` |
| others of Kafka's | what `zookeeper.set.acl` lets them |

The root is changed last: where it is protected, so is all below it.

Source: kafka.admin.ZkSecurityMigrator.
Differs: the root is protected too; Kafka leaves it open, and nodes in it without children with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.host.input_file import read_input
from engine.host.real import RealClock, RealEntropy
from engine.znode.errors import NoNode
from engine.znode.login import client_login
from engine.znode.model import ANY_VERSION, OPEN_ACL
from engine.znode.names import ROOT
from engine.znode.permissions import SASL
from engine.znode.protection import protected_acl

_OPEN: Final = list(OPEN_ACL)


def protect_nodes(address: str, settings: Mapping[str, str], timeout_s: float) -> None:
    """Protect the nodes of a store that are open, as the user whom a cluster's settings name.

    Errors: ConfigError, those of the store.
    """
    # It imports kazoo, which a cluster without such a store does not need.
    from engine.znode.kazoo_shell import ZnodeShellSession

    login = client_login(settings, read_input)
    if login is None:
        return
    session = ZnodeShellSession(
        address, timeout_s, RealClock(), lambda *_: None, lambda _state: None
    )
    session.log_in_as(login, RealEntropy())
    with session:
        if session.acl(ROOT)[0] != _OPEN:
            return
        for path in reversed(session.paths_below(ROOT)):
            session.begin()
            try:
                if session.acl(path)[0] == _OPEN:
                    acl = protected_acl(path, (SASL, login.username))
                    session.set_acl(path, acl, ANY_VERSION)
            except NoNode:
                # Gone since it was listed.
                continue
