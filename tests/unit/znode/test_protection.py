"""The ACLs of a protected cluster: those that a broker of 3.9.1 gave 76 nodes of such a cluster."""

from __future__ import annotations

import pytest

from engine.znode.model import OPEN_ACL, NodeAclEntry
from engine.znode.protection import protected_acl

_OWN = NodeAclEntry(31, "sasl", "kafka")
_READ = NodeAclEntry(1, "world", "anyone")


@pytest.mark.parametrize(
    ("path", "acl"),
    [
        ("/consumers", OPEN_ACL),
        ("/brokers/ids/1", (_OWN, _READ)),
        ("/brokers/topics/users", (_OWN, _READ)),
        ("/config/topics/t", (_OWN, _READ)),
        ("/config/changes/config_change_0000000000", (_OWN, _READ)),
        ("/config/users", (_OWN,)),
        ("/config/users/u1/clients/c1", (_OWN,)),
        ("/config/brokers/<default>", (_OWN,)),
        ("/delegation_token", (_OWN, _READ)),
        ("/delegation_token/tokens/T", (_OWN,)),
        ("/delegation_token/token_changes/token_change_0000000000", (_OWN, _READ)),
        ("/kafka-acl/Topic/x", (_OWN, _READ)),
    ],
)
def test_a_node_has_kafkas_acl(path: str, acl: tuple[NodeAclEntry, ...]) -> None:
    assert acl == protected_acl(path, ("sasl", "kafka"))
