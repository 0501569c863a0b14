"""Finds the clusters that a node of a metadata store belongs to.

A ZooKeeper may hold several clusters, each below its own node (its chroot). A node belongs to each
cluster whose chroot is above it, independently of the session's chroot; a tree belongs also to
those whose chroots are in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from engine.errors import ZnodeError
from engine.host.real import RealClock
from engine.znode.errors import NoNode
from engine.znode.kazoo_reader import ZnodeReader
from engine.znode.paths import CLUSTER_ID
from engine.znode.values import decode_cluster_id
from kctl.commands.znode.nodes import Store, choose_store_address
from kctl.zookeeper_login import set_login

if TYPE_CHECKING:
    from kctl.target_options import TargetOptions


def read_cluster_ids_of_store(parameters: TargetOptions) -> frozenset[str]:
    """Return the ids of the clusters that a change of a store's node concerns.

    `parameters` are the option values of a `kctl znode` command. The ids are in the `/cluster/id`
    nodes of the paths above the node and, if the change is recursive, below it.

    Errors: those of finding and reaching the store.
    """
    store = Store(parameters["zookeeper"], parameters["data"], parameters["timeout"])
    servers, _, chroot = choose_store_address(store).partition("/")
    names = [name for name in f"{chroot}/{parameters['path']}".split("/") if name]
    roots = accumulate(names, lambda above, name: f"{above}/{name}", initial="")
    found: set[str] = set()
    with set_login(ZnodeReader(servers, store.timeout_s, RealClock())) as reader:
        paths = [f"{root}{CLUSTER_ID}" for root in roots]
        if parameters.get("recursive"):
            paths += _ids_below(reader, f"/{'/'.join(names)}")
        for path in dict.fromkeys(paths):
            cluster_id = _read_id(reader, path)
            if cluster_id is not None:
                found.add(cluster_id)
    return frozenset(found)


def _ids_below(reader: ZnodeReader, path: str) -> Iterator[str]:
    """Yield the paths of `/cluster/id` nodes below a node; none if the node does not exist."""
    try:
        for node in reader.tree(path, None):
            if node.path.endswith(CLUSTER_ID):
                yield node.path
    except NoNode:
        return


def _read_id(reader: ZnodeReader, path: str) -> str | None:
    """Return the cluster id stored in a node, None if the node is missing or damaged."""
    try:
        data, _ = reader.get(path)
    except NoNode:
        return None
    try:
        return decode_cluster_id(data, path)
    except ZnodeError:
        # Damaged, and this change may correct it.
        return None
