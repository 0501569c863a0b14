"""The stat of a node that counts the changes of its ACL too, and a refusal by ZooKeeper."""

from __future__ import annotations

from typing import NamedTuple

from engine.znode.model import Stat
from engine.znode.zookeeper_wire import RequestRefused


class ShellStat(NamedTuple):
    """A node's stat, and the version of its ACL."""

    stat: Stat
    acl_version: int


class NodeRefused(RequestRefused):
    """A request about a node is understood but not executed; `code` is ZooKeeper's."""

    def __init__(self, code: int, path: str) -> None:
        super().__init__(code, f"{path}: refused with {code}")
        self.path = path
