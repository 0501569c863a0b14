"""A node's ACL in ZooKeeper, the stat that counts its changes, and a refusal by it."""

from __future__ import annotations

from typing import NamedTuple

from engine.znode.model import Stat
from engine.znode.zookeeper_wire import RequestRefused


class NodeAclEntry(NamedTuple):
    """Who may do what with a node; `permissions` are ZooKeeper's bits."""

    permissions: int
    scheme: str
    id: str


class ShellStat(NamedTuple):
    """A node's stat, and the version of its ACL."""

    stat: Stat
    acl_version: int


class NodeRefused(RequestRefused):
    """A request about a node is understood and not carried out; `code` is ZooKeeper's."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__(code, f"{path}: refused with {code}")
        self.path = path
