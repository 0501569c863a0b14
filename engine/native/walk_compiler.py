"""A process of its own that compiles the walk over records and keeps it: see `compiled_walk.py`.

One at a time for a cache: a lock beside the kept file says that another is at it, and is gone with
its process. The code is tried here before it gets its name, so that code that crashed would take
no broker with it.
"""

from __future__ import annotations

import os
import sys

from engine.errors import StorageError
from engine.host.lock_file import acquire
from engine.host.real import RealFiles
from engine.native.compiled_walk import kept_walk_path, load_walk
from engine.native.flat_code import keep_flat
from engine.native.kept_code import make_folder
from engine.native.record_walk import agrees

_LOWEST_PRIORITY = 19


def compile_walk(path: str) -> bool:
    """Compile, try and keep the walk; tells whether it is there."""
    # Code for any processor of this architecture: numba looks at these when it is imported.
    os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    try:
        from engine.native.flat_object import NotFlat, flat_code_of
        from engine.native.walk_kernel import compile_kernel
    except ImportError:
        return False
    try:
        code = flat_code_of(*compile_kernel())
    except NotFlat:
        return False
    trial, files = f"{path}.trial", RealFiles()
    if not keep_flat(trial, code):
        return False
    walk = load_walk(trial)
    is_right = walk is not None and agrees(walk)
    if is_right:
        files.rename(trial, path)
    else:
        files.remove(trial)
    return is_right


def main() -> int:
    """Compile if nobody else does; returns the exit code."""
    path = kept_walk_path()
    if path is None or not make_folder():
        return 1
    os.nice(_LOWEST_PRIORITY)
    files = RealFiles()
    try:
        release = acquire(f"{path}.lock")
    except StorageError:
        return 1
    try:
        return 0 if files.exists(path) or compile_walk(path) else 1
    except StorageError:
        return 1
    finally:
        release()


if __name__ == "__main__":
    sys.exit(main())
