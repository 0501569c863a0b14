"""Which files this process has open below a folder; those of other tests do not count."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_below(folder: Path | str) -> list[str]:
    """Return the paths of open files and folders below `folder`, sorted, one per descriptor."""
    start, paths = f"{os.path.realpath(folder)}{os.sep}", []
    for descriptor in os.listdir("/proc/self/fd"):
        # The descriptor of the listing itself is closed by now.
        with suppress(FileNotFoundError):
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sorted(path for path in paths if path.startswith(start))
