"""Load the compiled reader of fields into a command, or have it compiled for later commands.

```
cached, right for the samples      used from now on
not cached, numba installed        a process of the lowest priority compiles it for later commands;
                                   this command reads record by record
anything else                      the command reads record by record
```
"""

from __future__ import annotations

from engine.native import record_fields
from engine.native.compiled_walk import start_compiler
from engine.native.flat_code import flat_path, load_flat
from engine.native.record_fields import FieldReader, create_field_reader, use_fields

_SOURCES = ("field_kernel.py", "kernel_varint.py")


def kept_fields_path() -> str | None:
    """Return the cache path of the compiled field reader, None without a cache folder."""
    return flat_path("record-fields", record_fields.__file__, _SOURCES)


def load_fields(path: str) -> FieldReader | None:
    """Return the reader cached at a path, None without one; the caller must test it before use."""
    address = load_flat(path)
    return None if address is None else create_field_reader(address)


def load_or_compile_fields() -> bool:
    """Use the cached field reader if it is right; without one start its compilation.

    The compilation is for later commands. Return True if a reader is in use.
    """
    path = kept_fields_path()
    if path is None:
        return False
    reader = load_fields(path)
    if reader is None:
        start_compiler()
        return False
    return use_fields(reader)
