"""The four steps by which a small file is replaced, the same over every implementation of Files.

What a crash leaves, by the last step that was done:

```
1 write path.tmp   the old file; a torn .tmp, which every loader ignores
2 sync it          the old file; a whole .tmp
3 rename           the old or the new file
4 sync the folder  the new file
```
"""

from __future__ import annotations

import os.path

from engine.host.ports import Files

#: What the next version of a checkpoint is called until it is renamed.
TEMPORARY_SUFFIX = ".tmp"


def replace_durably(files: Files, path: str, content: bytes) -> None:
    """Replace `path` so that a crash leaves the old or the new content, never a mix.

    Source: Kafka's CheckpointFile.write; invariant L8.
    """
    temporary = path + TEMPORARY_SUFFIX
    handle = files.open(temporary, write=True, create=True)
    try:
        # 1. A .tmp that an earlier crash left may be longer than what is written now.
        handle.truncate(0)
        handle.append((content,))
        # 2. The data must be there before the name says so.
        handle.sync()
    finally:
        handle.close()
    # 3.
    files.rename(temporary, path)
    # 4.
    files.sync_dir(os.path.dirname(path) or ".")
