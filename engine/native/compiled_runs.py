"""Load the compiled code for runs of batches into a command.

It works as `compiled_fields.py` does for the field reader.
"""

from __future__ import annotations

from engine.native.batch_runs import RunCode, RunTier, kept_find_path, load_runs
from engine.native.compiled_walk import start_compiler
from engine.native.run_samples import is_fill_right, is_find_right


def is_right(code: RunCode) -> bool:
    """Return True if the compiled find and fill give the right results for the samples."""
    return is_find_right(code.find) and is_fill_right(code)


def load_or_compile_runs() -> bool:
    """Use the cached find and fill if they are right; without them start their compilation.

    The compilation is for later commands. Return True if compiled code is in use.
    """
    if kept_find_path() is None:
        return False
    code = load_runs()
    if code is None:
        start_compiler()
    elif is_right(code):
        RunTier.code = code
    return RunTier.code is not None
