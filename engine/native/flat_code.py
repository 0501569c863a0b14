"""Machine code of a single function without dependencies: cached, mapped into memory, and called.

```
$XDG_CACHE_HOME/kctl/native/<name>-<machine>-<key>.flat
head    64 bytes   a line that marks the format, a line with the crc32 of the code in hex, zeroes
code               from its first byte on; runs wherever it is mapped
```

`native_code.py` needs llvmlite to load object code, which takes 55 MB of memory: too much for a
broker. Code without calls, tables and relocations (`flat_object.py` checks that) is mapped from its
file in a millisecond. It is compiled for the baseline processor of an architecture, so that the key
needs only its name and its sources. No failure is raised: there is just no compiled code then.
"""

from __future__ import annotations

import os
import sys
import zlib

from engine.errors import StorageError
from engine.host.real import RealFiles
from engine.native.code_cache import add_to_cache, kept_path, key_of, read_own_file, sources_of

_MARK = b"kctl-flat 1\n"
_HEAD_BYTES = 64
_PROT_READ_EXEC = 1 | 4
_MAP_PRIVATE = 2
_MAP_FAILED = (1 << 64) - 1
_MACHINES = ("x86_64", "aarch64")


def flat_path(name: str, beside: str, sources: tuple[str, ...]) -> str | None:
    """Return the path of a function's cached code; `sources` are files in the folder of `beside`.

    The path has a hash of the sources. None if this machine cannot run such code, or a source is
    missing.
    """
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _MACHINES:
        return None
    try:
        text = sources_of(RealFiles(), beside, sources)
    except StorageError:
        return None
    return kept_path(f"{name}-{machine}-{key_of(_MARK + text)}.flat")


def keep_flat(path: str, code: bytes) -> bool:
    """Write machine code to the cache, for later runs of kctl; return True if that worked."""
    head = b"%b%08x\n" % (_MARK, zlib.crc32(code))
    return add_to_cache(RealFiles(), path, head.ljust(_HEAD_BYTES, b"\0") + code)


def load_flat(path: str) -> int | None:
    """Map cached machine code into memory for as long as the process lives; return its address.

    None if the file is absent, damaged, or cannot be mapped.
    """
    content = read_own_file(RealFiles(), path)
    if content is None or len(content) <= _HEAD_BYTES or not content.startswith(_MARK):
        return None
    checksum = b"%08x" % zlib.crc32(content[_HEAD_BYTES:])
    if content[len(_MARK) : len(_MARK) + 8] != checksum:
        return None
    return _map_code(path, len(content))


def _map_code(path: str, size: int) -> int | None:
    """Map a file of machine code; return the address of the code, None if it cannot be mapped."""
    import ctypes

    try:
        map_file = ctypes.CDLL(None).mmap
        file = RealFiles().open(path)
    except (StorageError, OSError, AttributeError):
        return None
    map_file.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_long,
    )
    map_file.restype = ctypes.c_void_p
    # Refused where the cache lies on a file system mounted without execution.
    start = map_file(None, size, _PROT_READ_EXEC, _MAP_PRIVATE, file.fileno(), 0)
    file.close()
    return None if start in (None, _MAP_FAILED) else start + _HEAD_BYTES
