"""CRC-32C (Castagnoli), the checksum of record batches of magic 2 and of producer snapshots.

The package `crc32c` reads its own version through `importlib.metadata` on import, which costs
more than everything else a short command imports. Only its extension module is needed, so that
is loaded by itself, and the ordinary import is the fallback where the package looks different.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.host.ports import Buffer

Checksum: TypeAlias = Callable[..., int]


def load_crc32c() -> Checksum:
    """Return the compiled CRC-32C function, without running its package's `__init__`."""
    from importlib.machinery import ExtensionFileLoader, PathFinder

    package = PathFinder.find_spec("crc32c")
    folders = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("crc32c._crc32c", folders) if folders else None
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return import_crc32c()
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    function: Checksum | None = getattr(module, "crc32c", None)
    return function or import_crc32c()


def import_crc32c() -> Checksum:
    """Return the compiled CRC-32C function by the ordinary import of its package."""
    from crc32c import crc32c as function

    return function


_checksum = load_crc32c()


def crc32c(buffer: Buffer, crc: int = 0) -> int:
    """Return the CRC-32C of `buffer`, unsigned; `crc` is that of the bytes before it."""
    return _checksum(buffer, crc)
