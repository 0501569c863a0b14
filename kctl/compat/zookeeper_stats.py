"""Print a node's stat like ZooKeeper's shell.

Source: StatPrinter of ZooKeeper 3.8.
"""

from __future__ import annotations

import time

from engine.znode.node_acl import ShellStat


def stat_text(stat: ShellStat) -> str:
    """Return a node's stat as zookeeper-shell prints it, a line for each field."""
    node = stat.stat
    rows = (
        ("cZxid", f"0x{node.czxid:x}"),
        ("ctime", _date_text(node.ctime_ms)),
        ("mZxid", f"0x{node.mzxid:x}"),
        ("mtime", _date_text(node.mtime_ms)),
        ("pZxid", f"0x{node.pzxid:x}"),
        ("cversion", node.cversion),
        ("dataVersion", node.version),
        ("aclVersion", stat.acl_version),
        ("ephemeralOwner", f"0x{node.ephemeral_owner:x}"),
        ("dataLength", node.data_length_bytes),
        ("numChildren", node.child_count),
    )
    return "\n".join(f"{name} = {value}" for name, value in rows)


def _date_text(time_ms: int) -> str:
    """Return a time in ms since 1970 as local time in the format of Java's Date."""
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(time_ms / 1000))
