"""Extracts the machine code of a single function from the object file that LLVM makes.

These parts of the object file are looked at:

```
.text                      the function's code from its first byte on
.rela.text, .rel.text      places that a loader would have to fill in: must be absent
another section of code    must be absent
```

Imported only to compile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_CODE_SECTION = ".text"
_RELOCATION_SECTIONS = (".rela.text", ".rel.text")


class NotFlat(Exception):
    """Raised for code that cannot run without other code or a loader."""


def extract_flat_code(llvm_text: str, name: str) -> bytes:
    """Return the machine code of a function that numba compiled, without its wrapper.

    It is called as `int32 name(int64 *result, void **exception, arguments...)`, and made for the
    baseline processor of this architecture. Raises NotFlat.
    """
    import llvmlite.binding as llvm

    wrapper = re.compile(r"^define [^\n]*@cfunc\." + re.escape(name) + r"\(.*?^}\n", re.M | re.S)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu="", features="", opt=3, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(wrapper.sub("", llvm_text))
    defined = [function.name for function in module.functions if not function.is_declaration]
    if defined != [name]:
        # Another function would precede it in the code, or be called by it.
        raise NotFlat(name)
    return _extract_code(llvm.ObjectFileRef.from_data(machine.emit_object(module)), name)


def _extract_code(object_file: llvm.ObjectFileRef, name: str) -> bytes:
    """Return the content of the only code section; raise NotFlat if it needs a loader."""
    code = b""
    for section in object_file.sections():
        section_name, size = (section.name() or b"").decode(), section.size()
        if not size:
            continue
        if section_name in _RELOCATION_SECTIONS or (section.is_text() and code):
            raise NotFlat(name)
        if section_name == _CODE_SECTION:
            code = bytes(section.data())
        elif section.is_text():
            raise NotFlat(name)
    if not code:
        raise NotFlat(name)
    return code
