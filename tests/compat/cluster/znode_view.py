"""The znode tree of a cluster as values that two clusters can have in common.

| masked | becomes |
|---|---|
| times, ports, the cluster's id, topic ids | a word |

The version of a node's data is compared, too: that of a partition's state is its partition epoch.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

_MASKS: Final = (
    (re.compile(rb'"timestamp":"[0-9]+"'), b'"timestamp":"<time>"'),
    (re.compile(rb'"topic_id":"[A-Za-z0-9_-]{22}"'), b'"topic_id":"<id>"'),
    (re.compile(rb'"id":"[A-Za-z0-9_-]{22}"'), b'"id":"<id>"'),
)


class Znode(NamedTuple):
    """What is compared of a node."""

    data: str
    version: int
    is_ephemeral: bool


def read_tree(client: KazooClient, root: str, ports: dict[int, int]) -> dict[str, Znode]:
    """Return all nodes below a root, by their path from there."""
    out: dict[str, Znode] = {}
    level = [root]
    while level:
        asked = [(path, client.get_async(path), client.get_children_async(path)) for path in level]
        level = []
        for path, node, children in asked:
            try:
                data, stat = node.get(timeout=20)
                names = children.get(timeout=20)
            except NoNodeError:
                continue
            shown = _masked(data, ports)
            out[path.removeprefix(root)] = Znode(shown, stat.version, stat.ephemeralOwner != 0)
            level += [f"{path}/{name}" for name in sorted(names)]
    return out


def _masked(data: bytes | None, ports: dict[int, int]) -> str:
    if data is None:
        return "<null>"
    for pattern, word in _MASKS:
        data = pattern.sub(word, data)
    for broker_id, port in ports.items():
        data = data.replace(str(port).encode(), b"<port %d>" % broker_id)
    return data.decode()


def topic_ids(client: KazooClient, root: str) -> dict[str, str]:
    """Return the topics' ids as znodes show them, by name."""
    out = {}
    for name in client.get_children(f"{root}/brokers/topics"):
        try:
            found = json.loads(client.get(f"{root}/brokers/topics/{name}")[0])
        except NoNodeError:
            continue
        out[name] = found.get("topic_id", "")
    return out


def tree_differences(real: dict[str, Znode], ours: dict[str, Znode]) -> dict[str, tuple[Any, Any]]:
    """Return where two trees differ: by path, what each has."""
    out: dict[str, tuple[Any, Any]] = {}
    for path in sorted(real.keys() | ours.keys()):
        one, other = real.get(path), ours.get(path)
        if one is None or other is None or one.is_ephemeral != other.is_ephemeral:
            out[path] = (one, other)
            continue
        # Which of several followers has caught up first is a race.
        if one.data != other.data and not _has_other_order(one.data, other.data):
            out[f"{path} data"] = (one, other)
        if one.version != other.version:
            out[f"{path} version"] = (one.version, other.version)
    return out


def _has_other_order(one: str, other: str) -> bool:
    pattern = re.compile(r'"isr":\[([0-9,]*)\]')
    isrs = [sorted(pattern.findall(data)[0].split(",")) for data in (one, other) if '"isr"' in data]
    return len(isrs) == 2 and isrs[0] == isrs[1] and pattern.sub("", one) == pattern.sub("", other)
