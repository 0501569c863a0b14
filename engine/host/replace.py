"""Durable replacement of a small file in four steps, the same for every implementation of Files.

State after a crash, by the last completed step:

```
1 write path.tmp   the old file; a torn .tmp, which every loader ignores
2 sync it          the old file; a whole .tmp
3 rename           the old or the new file
4 sync the folder  the new file
```
"""

from __future__ import annotations

import os.path
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import StorageError

if TYPE_CHECKING:
    from engine.host.ports import File, Files


#: Suffix of the new version of a file until it is renamed.
TEMPORARY_SUFFIX = ".tmp"


def replace_durably(files: Files, path: str, content: bytes) -> None:
    """Replace `path` so that a crash leaves the old or the new content, never a mix.

    An error leaves no .tmp, unless it cannot be removed either.

    Source: Kafka's CheckpointFile.write; invariant L8.
    """
    temporary = path + TEMPORARY_SUFFIX
    handle = files.open(temporary, write=True, create=True)
    try:
        _write_durably(handle, content)
        # 3.
        files.rename(temporary, path)
    except (StorageError, KeyboardInterrupt):
        # Nothing else removes it, and on a full disk it would use up the rest.
        with suppress(StorageError):
            files.remove(temporary)
        raise
    # 4.
    files.sync_dir(os.path.dirname(path) or ".")


def _write_durably(handle: File, content: bytes) -> None:
    """Write the content durably, and close the file."""
    try:
        # 1. A .tmp left by an earlier crash may be longer than the new content.
        handle.truncate(0)
        handle.append((content,))
        # 2. The data must be durable before the name refers to it.
        handle.sync()
    finally:
        handle.close()
