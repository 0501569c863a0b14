"""The compiled code of this machine for tests: what is kept, compiled once if there is none."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TypeVar

from engine.native.batch_runs import RunCode, kept_fill_path, load_runs
from engine.native.clean_records import CleanerCode, kept_keep_path, load_cleaner
from engine.native.compiled_fields import kept_fields_path, load_fields
from engine.native.compiled_walk import kept_walk_path, load_walk
from engine.native.header_counts import kept_count_path, load_count
from engine.native.record_fields import FieldReader
from engine.native.record_walk import RecordWalk

T = TypeVar("T")

_PATIENCE_S = 60


@cache
def compiled_walk_here() -> RecordWalk | None:
    """Return the walk, None where no such code can run or numba is not installed."""
    return _compiled(kept_walk_path(), load_walk)


@cache
def compiled_fields_here() -> FieldReader | None:
    """Return the reader of fields, None where no such code can run or numba is not installed."""
    return _compiled(kept_fields_path(), load_fields)


@cache
def compiled_runs_here() -> RunCode | None:
    """Return the code for runs, None where no such code can run or numba is not installed."""
    return _compiled(kept_fill_path(), lambda _path: load_runs())


@cache
def compiled_count_here() -> int | None:
    """Return the counter of headers, None where no such code can run or numba is not installed."""
    return _compiled(kept_count_path(), lambda _path: load_count())


@cache
def compiled_cleaner_here() -> CleanerCode | None:
    """Return the cleaner's code, None where no such code can run or numba is not installed."""
    return _compiled(kept_keep_path(), lambda _path: load_cleaner())


def _compiled(path: str | None, load: Callable[[str], T | None]) -> T | None:
    if path is None:
        return None
    code = load(path)
    deadline = time.monotonic() + _PATIENCE_S
    while code is None and find_spec("numba") is not None and time.monotonic() < deadline:
        # It ends at once while that of another test process is at it.
        subprocess.run([sys.executable, "-m", "engine.native.flat_compiler"], check=False)
        code = load(path)
    return code
