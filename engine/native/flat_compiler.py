"""Compiler process: it compiles flat code and caches it for other processes, see `flat_code.py`.

A lock file beside each cached file lets only one process compile it; the lock is released when that
process ends. Code is tested here before the file gets its final name, so that code that crashes
ends this process, not a broker or a command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.lock_file import lock_file
from engine.host.real import RealFiles
from engine.native.batch_runs import RunCode, kept_fill_path, kept_find_path
from engine.native.clean_records import (
    is_keep_right,
    is_note_right,
    kept_keep_path,
    kept_note_path,
)
from engine.native.code_cache import make_folder
from engine.native.compiled_fields import kept_fields_path, load_fields
from engine.native.compiled_walk import kept_walk_path, load_walk
from engine.native.flat_code import keep_flat, load_flat
from engine.native.header_counts import is_count_right, kept_count_path
from engine.native.record_fields import is_right_about_samples
from engine.native.record_walk import is_walk_right
from engine.native.run_samples import is_fill_right, is_find_right

_LOWEST_PRIORITY = 19


class Kernel(NamedTuple):
    """One function to compile.

    Its cache path, its compiler, and the self-test of the compiled code.
    """

    path: Callable[[], str | None]
    compile: Callable[[], tuple[str, str]]
    is_right: Callable[[str], bool]


def _compile_walk() -> tuple[str, str]:
    """Return the LLVM code and name of the check of records; raises ImportError without numba."""
    from engine.native.walk_kernel import compile_kernel

    return compile_kernel()


def _is_walk_right(path: str) -> bool:
    """Return True if the walk at a cache path can be loaded and is right about the samples."""
    walk = load_walk(path)
    return walk is not None and is_walk_right(walk)


def _compile_fields() -> tuple[str, str]:
    """Return the LLVM code and name of the field reader; raises ImportError without numba."""
    from engine.native.field_kernel import compile_kernel

    return compile_kernel()


def _are_fields_right(path: str) -> bool:
    """Return True if the field reader at a cache path can be loaded and reads samples right."""
    reader = load_fields(path)
    return reader is not None and is_right_about_samples(reader)


def _compile_note() -> tuple[str, str]:
    """Return the LLVM code and name of the cleaner's `note_keys`.

    Raises ImportError without numba.
    """
    from engine.native.cleaner_kernel import compile_note_kernel

    return compile_note_kernel()


def _is_note_right_at(path: str) -> bool:
    """Return True if `note_keys` at a cache path can be loaded and is right about the samples."""
    address = load_flat(path)
    return address is not None and is_note_right(address)


def _compile_keep() -> tuple[str, str]:
    """Return the LLVM code and name of the cleaner's `keep_records`; ImportError without numba."""
    from engine.native.cleaner_kernel import compile_keep_kernel

    return compile_keep_kernel()


def _is_keep_right_at(path: str) -> bool:
    """Return True if `keep_records` at a cache path can be loaded and is right about samples."""
    address = load_flat(path)
    return address is not None and is_keep_right(address)


def _compile_find() -> tuple[str, str]:
    """Return the LLVM code and name of the run finder; raises ImportError without numba."""
    from engine.native.run_kernel import compile_find_kernel

    return compile_find_kernel()


def _is_find_right_at(path: str) -> bool:
    """Return True if the run finder at a cache path can be loaded and is right about samples."""
    address = load_flat(path)
    return address is not None and is_find_right(address)


def _compile_fill() -> tuple[str, str]:
    """Return the LLVM code and name of the column filler; raises ImportError without numba."""
    from engine.native.run_kernel import compile_fill_kernel

    return compile_fill_kernel()


def _is_fill_right_at(path: str) -> bool:
    """Return True if the column filler at a cache path is right; needs the cached run finder."""
    find_path = kept_find_path()
    find = None if find_path is None else load_flat(find_path)
    fill = load_flat(path)
    return find is not None and fill is not None and is_fill_right(RunCode(find, fill))


def _compile_count() -> tuple[str, str]:
    """Return the LLVM code and name of the header counter; raises ImportError without numba."""
    from engine.native.count_kernel import compile_count_kernel

    return compile_count_kernel()


def _is_count_right_at(path: str) -> bool:
    """Return True if the header counter at a cache path can be loaded and counts samples right."""
    address = load_flat(path)
    return address is not None and is_count_right(address)


WALK = Kernel(kept_walk_path, _compile_walk, _is_walk_right)
FIELDS = Kernel(kept_fields_path, _compile_fields, _are_fields_right)
NOTE = Kernel(kept_note_path, _compile_note, _is_note_right_at)
KEEP = Kernel(kept_keep_path, _compile_keep, _is_keep_right_at)
FIND = Kernel(kept_find_path, _compile_find, _is_find_right_at)
FILL = Kernel(kept_fill_path, _compile_fill, _is_fill_right_at)
COUNT = Kernel(kept_count_path, _compile_count, _is_count_right_at)
#: What a broker waits for comes first.
KERNELS = (WALK, FIELDS, NOTE, KEEP, FIND, FILL, COUNT)


def compile_flat(kernel: Kernel, path: str) -> bool:
    """Compile a function, test it on samples, cache it at `path`; return True if it is cached."""
    # Code for any processor of this architecture: numba looks at these when it is imported.
    os.environ |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    try:
        from engine.native.flat_object import NotFlat, extract_flat_code

        compiled = kernel.compile()
    except ImportError:
        return False
    try:
        code = extract_flat_code(*compiled)
    except NotFlat:
        return False
    trial, files = f"{path}.trial", RealFiles()
    if not keep_flat(trial, code):
        return False
    is_right = kernel.is_right(trial)
    if is_right:
        files.rename(trial, path)
    else:
        files.remove(trial)
    return is_right


def _compile_unless_cached(kernel: Kernel) -> bool:
    """Compile and cache a function unless it is cached; return True if it then is.

    False also if another process compiles it at the moment, or this machine has no cache path.
    """
    path = kernel.path()
    if path is None:
        return False
    files = RealFiles()
    if files.exists(path):
        return True
    try:
        release = lock_file(f"{path}.lock")
    except StorageError:
        return False
    try:
        return files.exists(path) or compile_flat(kernel, path)
    except StorageError:
        return False
    finally:
        release()


def main() -> int:
    """Compile all functions that are not cached; return the exit code, 0 if all are cached then."""
    if not make_folder():
        return 1
    os.nice(_LOWEST_PRIORITY)
    results = [_compile_unless_cached(kernel) for kernel in KERNELS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
