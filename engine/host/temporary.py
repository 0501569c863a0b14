"""Folders for the time of one block, removed however often the process is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.host.deferred_signals import signals_blocked


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Create a folder that is removed after the block, even if signals interrupt it repeatedly.

    Only a kill of the process leaves it. Errors: OSError if no folder can be created.
    """
    import shutil
    import tempfile

    folder = None
    try:
        with signals_blocked():
            folder = tempfile.mkdtemp(prefix=prefix)
        yield folder
    finally:
        with signals_blocked():
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
