"""Check the path of a node, and split it.

```
/                    the root
/a/b                 no empty name, no "." or "..", no slash at the end
not allowed          U+0000-001F, U+007F-009F, surrogates and U+E000-F8FF, U+FFF0-FFFF
```

Source: org.apache.zookeeper.common.PathUtils.validatePath.
"""

from __future__ import annotations

import re

from engine.limits import ZNODE_PATH_CHARS_MAX
from engine.znode.errors import InvalidZnodePath, ZnodeLimitExceeded

ROOT = "/"
#: The characters that no path may have.
FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def check_path(path: str) -> None:
    """Raise InvalidZnodePath unless a node may have this path.

    A path that is too long raises ZnodeLimitExceeded.
    """
    if len(path) > ZNODE_PATH_CHARS_MAX:
        raise ZnodeLimitExceeded(path[:80], "characters in a path", ZNODE_PATH_CHARS_MAX)
    if path == ROOT:
        return
    if path[:1] != "/":
        raise InvalidZnodePath(path, "a path starts with a slash")
    if FORBIDDEN.search(path):
        raise InvalidZnodePath(repr(path), "a character that no path may have")
    for name in path[1:].split("/"):
        if not name:
            raise InvalidZnodePath(path, "an empty name")
        if name in (".", ".."):
            raise InvalidZnodePath(path, "a relative name")


def parent_of(path: str) -> str:
    """Return the path of the parent of a node that is not the root."""
    return path[: path.rindex("/")] or ROOT


def name_of(path: str) -> str:
    """Return the last name of a path."""
    return path[path.rindex("/") + 1 :]
