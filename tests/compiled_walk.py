"""The compiled walk of this machine for tests: the kept one, compiled once if there is none."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec

from engine.native.compiled_walk import kept_walk_path, load_walk
from engine.native.record_walk import RecordWalk

_PATIENCE_S = 60


@cache
def compiled_walk_here() -> RecordWalk | None:
    """Return the walk, None where no such code can run or numba is not installed."""
    path = kept_walk_path()
    if path is None:
        return None
    walk = load_walk(path)
    deadline = time.monotonic() + _PATIENCE_S
    while walk is None and find_spec("numba") is not None and time.monotonic() < deadline:
        # It ends at once while that of another test process is at it.
        subprocess.run([sys.executable, "-m", "engine.native.walk_compiler"], check=False)
        walk = load_walk(path)
    return walk
