"""Generate the source of an encoder: one function per (message, version), all loops inlined.

    def encode(o0, w0):         o0: the message, w0: the bytearray to append to

Consecutive fields of fixed size are packed by one `struct` call, together with the length of the
next field. A value that does not fit raises struct's own error; `writer.Writer` then names the
field.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Format
from struct import pack
from typing import Final, TypeAlias, cast

from engine.errors import EngineError
from engine.wire.layout import FIXED, NO_UUID, FieldLayout, StructLayout
from engine.wire.schema import FieldSchema
from engine.wire.structs import Message, shared_default, struct_classes
from engine.wire.writer import STRING_BYTES_MAX, varint_bytes

Encoder: TypeAlias = Callable[[Message, bytearray], None]

#: The unsigned varints of one byte.
SMALL: Final = tuple(bytes((value,)) for value in range(128))


class Unwritable(EngineError):
    """An encoder met a value that the version cannot represent; `Writer` then names the field."""


def long_compact(raw: bytes) -> bytes:
    """Return the bytes of a compact string whose length takes more than one byte.

    Raises Unwritable for a string that is too long.
    """
    if len(raw) > STRING_BYTES_MAX:
        raise Unwritable
    return varint_bytes(len(raw) + 1) + raw


class _Source:
    """The lines of source generated up to now, and the pending fields of fixed size.

    `out` is the name of the bytearray to which the next lines append.
    """

    def __init__(self) -> None:
        """Start inside the function `encode`."""
        self.lines: list[str] = []
        #: Indentation of the next line, in spaces.
        self.depth = 1
        #: Number of generated variable names, so that each is unique.
        self.names = 0
        #: Variable of the bytearray to which the next lines append.
        self.out = "w0"
        #: Format codes and values of the pending fields, which are written before the next field
        #: without a fixed size.
        self.pending_codes = ""
        self.pending_values: list[str] = []
        #: Packing functions that the source uses, by name.
        self.formats: dict[str, Format] = {}

    def add_line(self, text: str) -> None:
        """Add one line at the current indentation, after the write of the pending fields."""
        if self.pending_codes:
            self.flush()
        self.lines.append(" " * self.depth + text)

    def add_fixed(self, code: str, value: str) -> None:
        """Add a fixed-size field to the pending ones, which one `struct` call will pack."""
        self.pending_codes += code
        self.pending_values.append(value)

    def flush(self) -> None:
        """Add one `struct` call that encodes all pending fields."""
        codes, values = self.pending_codes, self.pending_values
        self.pending_codes, self.pending_values = "", []
        if codes:
            name = "p_" + codes.replace("?", "o")
            self.formats.setdefault(name, Format(">" + codes))
            self.add_line(f"{self.out} += {name}({', '.join(values)})")

    def add_early_line(self, text: str) -> None:
        """Add one line before the pending fields; it must not append bytes or depend on them."""
        self.lines.append(" " * self.depth + text)

    def name(self, prefix: str) -> str:
        """Return a name for a local variable of the encoder that is not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"


def _begin_null_branch(out: _Source, field: FieldLayout, value: str, null: str) -> None:
    """Generate the branch for null if a field is nullable, and open the branch for other values."""
    if field.nullable:
        out.add_line(f"if {value} is None: {out.out} += {null}")
        out.add_line("else:")
        out.depth += 1


def _end_null_branch(out: _Source, field: FieldLayout) -> None:
    """Close the branch that `_begin_null_branch` opened."""
    if field.nullable:
        out.flush()
        out.depth -= 1


def _generate_string(out: _Source, field: FieldLayout, value: str) -> None:
    """Generate the write of a string that is not null; `value` is the source of the string."""
    raw = out.name("s")
    out.add_early_line(f"{raw} = {value}.encode()")
    if field.compact:
        short = f"SMALL[len({raw}) + 1] + {raw}"
        out.add_line(f"{out.out} += {short} if len({raw}) < 127 else long_compact({raw})")
    else:
        out.add_fixed("h", f"len({raw})")
        out.add_line(f"{out.out} += {raw}")


def _generate_length(out: _Source, field: FieldLayout, length: str) -> None:
    """Generate the write of the length of bytes or the count of an array.

    `length` is the source of the number.
    """
    if field.compact:
        short = f"SMALL[{length} + 1] if {length} < 127"
        out.add_line(f"{out.out} += {short} else varint_bytes({length} + 1)")
    else:
        out.add_fixed("i", length)


def _generate_numbers(out: _Source, field: FieldLayout, items: str) -> None:
    """Generate the write of an array of numbers, together with a short count."""
    count, code = out.name("n"), FIXED[field.type].code
    out.add_early_line(f"{count} = len({items})")
    if field.compact:
        together = f"pack(f'>B{{{count}}}{code}', {count} + 1, *{items})"
        apart = f"varint_bytes({count} + 1) + pack(f'>{{{count}}}{code}', *{items})"
        out.add_line(f"{out.out} += {together} if {count} < 127 else {apart}")
    else:
        out.add_line(f"{out.out} += pack(f'>i{{{count}}}{code}', {count}, *{items})")


def _generate_array(out: _Source, field: FieldLayout, value: str) -> None:
    """Generate the write of an array that is not null."""
    items = out.name("a")
    out.add_early_line(f"{items} = {value}")
    if field.struct is None and field.type == "uuid":
        _generate_length(out, field, f"len({items})")
        out.add_line(f"if any(len(u) != 16 for u in {items}): raise Unwritable")
        out.add_line(f"{out.out} += b''.join({items})")
        return
    if field.struct is None and field.type in FIXED:
        _generate_numbers(out, field, items)
        return
    _generate_length(out, field, f"len({items})")
    item = out.name("o")
    out.add_line(f"for {item} in {items}:")
    out.depth += 1
    if field.struct:
        _generate_struct(out, field.struct, item)
    else:
        _generate_string(out, field, item)
    out.flush()
    out.depth -= 1


def _generate_field(out: _Source, field: FieldLayout, value: str) -> None:
    """Generate the write of one field; `value` is the source of its value."""
    if not field.is_array and field.type in FIXED:
        if field.type == "uuid":
            out.add_early_line(f"if len({value}) != 16: raise Unwritable")
        out.add_fixed(FIXED[field.type].code, value)
    elif field.struct and not field.is_array:
        _begin_null_branch(out, field, value, "b'\\x00'" if field.place == "tagged" else "b'\\xff'")
        if field.nullable:
            out.add_fixed("B", "1")
        item = out.name("o")
        out.add_early_line(f"{item} = {value}")
        _generate_struct(out, field.struct, item)
        _end_null_branch(out, field)
    else:
        is_string = field.type == "string" and not field.is_array
        null = "b'\\x00'" if field.compact else "b'\\xff\\xff'" + ("" if is_string else " * 2")
        _begin_null_branch(out, field, value, null)
        if field.is_array:
            _generate_array(out, field, value)
        elif is_string:
            _generate_string(out, field, value)
        else:
            _generate_length(out, field, f"len({value})")
            out.add_line(f"{out.out} += {value}")
        _end_null_branch(out, field)


def _differs_from_default(field: FieldSchema, value: str) -> str:
    """Return the source of a condition that is true if a field differs from its default."""
    if field.null_by_default:
        return f"{value} is not None"
    if field.is_array or field.type == "bytes":
        none = "" if field.nullable.is_empty else f"{value} is None or "
        return f"{none}len({value})"
    if field.is_struct:
        return f"{value} != D_{field.type}"
    default = "NO_UUID" if field.type == "uuid" else repr(shared_default(field))
    return f"{value} != {default}"


def _generate_struct(out: _Source, layout: StructLayout, value: str) -> None:
    """Generate the write of a struct held in the local `value`."""
    refused = [
        _differs_from_default(field.schema, f"{value}.{field.attribute}")
        for field in layout.placed("absent")
        if not field.schema.ignorable
    ]
    if refused:
        out.add_early_line(f"if {' or '.join(refused)}: raise Unwritable")
    for field in layout.placed("positional"):
        _generate_field(out, field, f"{value}.{field.attribute}")
    if not layout.flexible:
        return
    tagged = layout.placed("tagged")
    if tagged:
        _generate_tags(out, tagged, value)
    else:
        out.add_fixed("B", "0")


def _generate_tags(out: _Source, tagged: list[FieldLayout], value: str) -> None:
    """Generate the write of the tagged section: a zero if all fields have their defaults."""
    places = [f"{value}.{field.attribute}" for field in tagged]
    tests = [
        _differs_from_default(f.schema, place) for f, place in zip(tagged, places, strict=True)
    ]
    outer, count, section = out.out, out.name("n"), out.name("w")
    out.add_line(f"if {' or '.join(tests)}:")
    out.depth += 1
    out.add_line(f"{count} = 0; {section} = bytearray()")
    for field, place, test in zip(tagged, places, tests, strict=True):
        out.add_line(f"if {test}:")
        out.depth += 1
        out.out = out.name("w")
        out.add_line(f"{count} += 1; {out.out} = bytearray()")
        _generate_field(out, field, place)
        head = f"varint_bytes({field.tag}) + varint_bytes(len({out.out}))"
        out.add_line(f"{section} += {head} + {out.out}")
        out.depth -= 1
    out.out = outer
    out.add_line(f"{outer} += varint_bytes({count}) + {section}")
    out.depth -= 1
    out.add_line(f"else: {outer} += SMALL[0]")


def generate_encoder(layout: StructLayout) -> tuple[str, dict[str, Format]]:
    """Return an encoder's source, and the packers that it calls, by name."""
    out = _Source()
    _generate_struct(out, layout, "o0")
    out.flush()
    body = "\n".join(out.lines) or " pass"
    return f"def encode(o0, w0):\n{body}\n", out.formats


def compile_encoder(name: str, release: str, layout: StructLayout) -> Encoder:
    """Return the compiled encoder of one version of a message."""
    source, formats = generate_encoder(layout)
    scope: dict[str, object] = {
        "SMALL": SMALL,
        "NO_UUID": NO_UUID,
        "Unwritable": Unwritable,
        "long_compact": long_compact,
        "pack": pack,
        "varint_bytes": varint_bytes,
    }
    scope |= {packer: made.pack for packer, made in formats.items()}
    scope |= {f"D_{struct}": made() for struct, made in struct_classes(name, release).items()}
    # The text is built from the packed tables alone; no outside word reaches it.
    exec(compile(source, f"<encoder of {name}>", "exec"), scope)
    return cast("Encoder", scope["encode"])
