"""Memory before a page that cannot be touched: code that goes beyond it ends the process."""

from __future__ import annotations

import ctypes
import mmap

_PROT_NONE = 0


def guarded(content: bytes) -> memoryview:
    """Return writable memory with this content, the last byte of which is the last of its page."""
    size = -(-max(len(content), 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(address + size, mmap.PAGESIZE, _PROT_NONE):
        raise OSError("mprotect")
    view = memoryview(memory)[size - len(content) : size]
    view[:] = content
    return view
