"""Reservation of disk space for a file that will grow, by Linux' fallocate.

Python's own `posix_fallocate` also extends the file: readers would find zeroes after its records.
Loaded with the first file that reserves space.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import cache

_KEEP_SIZE = 1
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)


def reserve_blocks(descriptor: int, size_bytes: int) -> int:
    """Reserve disk blocks for a file up to a size; return 0, or the errno of the failure.

    Systems and file systems without fallocate reserve nothing, which counts as success.
    """
    import ctypes

    fallocate = _load_fallocate()
    if fallocate is None:
        return 0
    while fallocate(descriptor, _KEEP_SIZE, 0, size_bytes):
        code = ctypes.get_errno()
        if code != errno.EINTR:
            return 0 if code in _UNSUPPORTED else code
    return 0


@cache
def _load_fallocate() -> Callable[[int, int, int, int], int] | None:
    """Return Linux' fallocate, None where the C library has none."""
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function
