"""The machine code of one function out of LLVM's code for it, if it needs nothing else.

An object file (ELF, 64 bits, little-endian), as far as it is looked at:

```
at 40  uint64 position of the section table     at 60  uint16 how many sections
section  64 bytes: name type flags address offset size link info align entry_size
symbol   24 bytes: name info other section value size; names in the section `link`
types    2 symbols, 4 and 9 relocations of the section `info`
```

Imported only to compile.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

_SECTIONS_AT = struct.Struct("<Q")
_SECTION_COUNT = struct.Struct("<H")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS = 2
_RELOCATIONS = (4, 9)


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class NotFlat(Exception):
    """Code that cannot run by itself."""


def flat_code_of(llvm_text: str, name: str) -> bytes:
    """Return the machine code of a function that numba compiled, its wrapper left out.

    It is called as `int32 name(int64 *result, void **exception, arguments...)`, and made for
    the plainest processor of this architecture. Raises NotFlat.
    """
    import llvmlite.binding as llvm

    wrapper = re.compile(r"^define [^\n]*@cfunc\." + re.escape(name) + r"\(.*?^}\n", re.M | re.S)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu="", features="", opt=3, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(wrapper.sub("", llvm_text))
    return flat_text(bytes(machine.emit_object(module)), name)


def flat_text(elf: bytes, name: str) -> bytes:
    """Return the section that begins with a function; NotFlat if something must be filled in."""
    (start,) = _SECTIONS_AT.unpack_from(elf, 40)
    (count,) = _SECTION_COUNT.unpack_from(elf, 60)
    sections = [_Section(*_SECTION.unpack_from(elf, start + 64 * n)) for n in range(count)]
    for found, section, value in _symbols(elf, sections):
        if found == name:
            if value or any(s.type in _RELOCATIONS and s.info == section for s in sections):
                raise NotFlat(name)
            text = sections[section]
            return elf[text.offset : text.offset + text.size]
    raise NotFlat(name)


def _symbols(elf: bytes, sections: list[_Section]) -> Iterator[tuple[str, int, int]]:
    """Yield name, section and place of what is defined."""
    for table in sections:
        if table.type != _SYMBOLS:
            continue
        names = sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, _, _, section, value, _ = _SYMBOL.unpack_from(elf, at)
            if 0 < section < len(sections):
                end = elf.index(b"\0", names + name)
                yield elf[names + name : end].decode(), section, value
