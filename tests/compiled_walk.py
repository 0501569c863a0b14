"""The compiled walk of this machine for tests: the kept one, compiled once if there is none."""

from __future__ import annotations

from functools import cache

from engine.broker.compiled_walk import kept_walk_path, load_walk
from engine.broker.walk_compiler import main
from engine.records.record_walk import RecordWalk


@cache
def compiled_walk_here() -> RecordWalk | None:
    """Return the walk, None where no such code can run or numba is not installed."""
    path = kept_walk_path()
    if path is None:
        return None
    walk = load_walk(path)
    if walk is None and _compiled_in_a_process() == 0:
        walk = load_walk(path)
    return walk


def _compiled_in_a_process() -> int:
    # Not in this one: the compiler goes to the lowest priority, and loads numba for good.
    import subprocess
    import sys

    return subprocess.run([sys.executable, "-m", main.__module__], check=False).returncode
