"""The nodes that ZooKeeper's servers fill themselves: quotas and the configuration.

```
/zookeeper/quota/<path>/zookeeper_limits   what a shell has set
/zookeeper/quota/<path>/zookeeper_stats    count=<nodes>,bytes=<of their data>, at <path> and below
/zookeeper/config                          empty for a single server
```

Source: DataTree.updateQuotaStat and addConfigNode of ZooKeeper 3.8.
Differs: statistics are counted when they are read; a quota that is exceeded is not logged. No node
exists before a shell creates it; `/zookeeper/config` can be read, but is not in the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.znode.errors import NoNode
from engine.znode.model import Stat

if TYPE_CHECKING:
    from engine.znode.store import ZnodeStore

_QUOTAS: Final = "/zookeeper/quota"
_STATISTICS: Final = "/zookeeper_stats"
CONFIG: Final = "/zookeeper/config"
#: The stat of a node that no transaction created.
CONFIG_STAT: Final = Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, acl_version=-1)


def counted_path(path: str) -> str | None:
    """Return the path whose nodes a node of statistics counts, None for any other node."""
    counted = path.removeprefix(_QUOTAS).removesuffix(_STATISTICS)
    is_of_quota = len(counted) == len(path) - len(_QUOTAS) - len(_STATISTICS)
    return counted if is_of_quota and counted else None


def quota_statistics(store: ZnodeStore, session_id: int, path: str) -> bytes:
    """Return the text `count=N,bytes=M` of the nodes at and below a path, and of their data."""
    count = size_bytes = 0
    left = [path]
    while left:
        node = left.pop()
        try:
            data, _ = store.get(session_id, node)
        except NoNode:
            break
        count += 1
        size_bytes += len(data or b"")
        left += [f"{node}/{name}" for name in store.children(session_id, node)[0]]
    return f"count={count},bytes={size_bytes}".encode()
