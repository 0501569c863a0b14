"""A node's ACL in ZooKeeper, and the stat that counts its changes."""

from __future__ import annotations

from typing import NamedTuple

from engine.znode.model import Stat


class NodeAclEntry(NamedTuple):
    """Who may do what with a node; `permissions` are ZooKeeper's bits."""

    permissions: int
    scheme: str
    id: str


class ShellStat(NamedTuple):
    """A node's stat, and the version of its ACL."""

    stat: Stat
    acl_version: int
