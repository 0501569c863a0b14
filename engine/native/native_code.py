"""Machine code compiled once and cached: loading it needs neither its compiler nor numba.

```
$XDG_CACHE_HOME/kctl/native/<name>-<key>.o    name of the function, a newline, object code
```

The key covers the sources, the processor with its features, and the version of LLVM's loader, so
that code never runs on a processor that it was not made for. A file that is damaged, or that
another user could have written, is not loaded. No failure is raised: without llvmlite, a cache
folder or a compiler there is just no compiled code.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import TypeAlias

from engine.errors import StorageError
from engine.host.real import RealFiles
from engine.native.code_cache import add_to_cache, kept_path, key_of, read_own_file, sources_of

Compiler: TypeAlias = Callable[[], tuple[bytes, str]]

_MARK = b"kctl-native 1\n"
# An LLVM engine owns its code: freeing it would unmap functions that are still in use.
_engines: list[object] = []


def load_native(
    name: str, beside: str, sources: tuple[str, ...], compiler: Compiler | None
) -> int | None:
    """Return the address of a compiled function, compiling it if it is not cached yet.

    `sources` are files in the folder of `beside`. None without llvmlite, or when the function
    is not cached and `compiler` is None or lacks its packages.
    """
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except ImportError:
        return None
    files = RealFiles()
    try:
        path = kept_path(f"{name}-{_key(llvmlite, llvm, files, beside, sources)}.o")
    except StorageError:
        # Installed without its sources.
        return None
    kept = _read_object(files, path)
    if kept is None:
        if compiler is None:
            return None
        try:
            code, symbol = compiler()
        except ImportError:
            return None
        head = b"%b%b\n%08x\n\n" % (_MARK, symbol.encode(), zlib.crc32(code))
        add_to_cache(files, path, head + code)
        kept = code, symbol
    return _link(llvm, *kept)


def _key(
    llvmlite: ModuleType, llvm: ModuleType, files: RealFiles, beside: str, sources: tuple[str, ...]
) -> str:
    """Return the key in the cached file's name: a hash of compiler, processor and sources."""
    features = llvm.get_host_cpu_features().flatten()
    text = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {features}".encode()
    return key_of(text + sources_of(files, beside, sources))


def _read_object(files: RealFiles, path: str) -> tuple[bytes, str] | None:
    """Return the cached object code and its symbol; None if the file is absent or damaged."""
    content = read_own_file(files, path)
    if content is None:
        return None
    head, _, rest = content.partition(b"\n\n")
    if not head.startswith(_MARK) or head.count(b"\n") != 2:
        return None
    _, symbol, checksum = head.split(b"\n")
    if checksum != b"%08x" % zlib.crc32(rest):
        return None
    return rest, symbol.decode()


def _link(llvm: ModuleType, code: bytes, symbol: str) -> int | None:
    """Link object code into this process; return the address of the function named `symbol`.

    None if the code has no such function.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Compiled code calls these functions for copies; the loader does not find them by itself.
    libc = ctypes.CDLL(None)
    for name in ("memcpy", "memmove", "memset"):
        llvm.add_symbol(name, ctypes.cast(getattr(libc, name), ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address(symbol) or None
