"""Generate the source of a decoder: one function per (message, version), all loops inlined.

    def decode(b, p, e):        b: the bytes, p: the start position, e: their length
        ...
        return o0, p

Consecutive fields of fixed size are unpacked by one `struct` call, together with the length or the
first varint byte of the next field. The function raises for wrong bytes without a position:
`struct.error` and IndexError beyond the end, UnicodeDecodeError, or Refused for an impossible
length. `reader.Reader` then finds the position.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Format
from struct import unpack_from
from typing import TypeAlias, cast

from engine.wire import read_parts
from engine.wire.layout import FIXED, NO_UUID, FieldLayout, StructLayout, attribute_name
from engine.wire.structs import Struct, struct_classes

Decoder: TypeAlias = Callable[[bytes | memoryview, int, int], tuple[Struct, int]]


class _Source:
    """The lines of source generated up to now, and the pending fields of fixed size."""

    def __init__(self) -> None:
        """Start inside the function `decode`."""
        self.lines: list[str] = []
        #: Indentation of the next line, in spaces.
        self.depth = 1
        #: Number of generated variable names, so that each is unique.
        self.names = 0
        #: Format codes and targets of the pending fields, which are read before the next field
        #: without a fixed size.
        self.pending_codes = ""
        self.pending_targets: list[str] = []
        #: Unpacking functions that the source uses, by name.
        self.formats: dict[str, Format] = {}

    def add_line(self, text: str) -> None:
        """Add one line at the current indentation, after the read of the pending fields."""
        if self.pending_codes:
            self.flush()
        self.lines.append(" " * self.depth + text)

    def add_fixed(self, code: str, target: str) -> None:
        """Add a fixed-size field to the pending ones, which one `struct` call will unpack."""
        self.pending_codes += code
        self.pending_targets.append(target)

    def flush(self) -> None:
        """Add one `struct` call that reads all pending fields."""
        codes, targets = self.pending_codes, self.pending_targets
        self.pending_codes, self.pending_targets = "", []
        if codes == "B":
            self.add_line(f"{targets[0]} = b[p]; p += 1")
        elif codes:
            name = "u_" + codes.replace("?", "o")
            made = self.formats.setdefault(name, Format(">" + codes))
            comma = "," if len(targets) == 1 else ""
            self.add_line(f"{', '.join(targets)}{comma} = {name}(b, p); p += {made.size}")

    def name(self, prefix: str) -> str:
        """Return a name for a local variable of the decoder that is not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def varint(self, target: str) -> None:
        """Generate the read of an unsigned varint into `target`.

        Its first byte is read with the pending fields.
        """
        self.add_fixed("B", target)
        self.add_line(f"if {target} > 127: {target}, p = long_varint(b, p, {target})")


def _generate_string(out: _Source, field: FieldLayout, target: str, *, nullable: bool) -> None:
    """Generate the read of a string into `target`, inlined for short ones."""
    length = out.name("n")
    take = f"{target} = str(b[p:q], 'utf-8'); p = q"
    if field.compact:
        out.add_fixed("B", length)
        out.add_line(f"if 0 < {length} < 128 and (q := p + {length} - 1) <= e: {take}")
        helper = "nullable_compact_string" if nullable else "compact_string"
        out.add_line(f"else: {target}, p = {helper}(b, p, e, {length})")
        return
    out.add_fixed("h", length)
    out.add_line(f"if {length} >= 0 and (q := p + {length}) <= e: {take}")
    if nullable:
        out.add_line(f"elif {length} == -1: {target} = None")
    out.add_line("else: raise Refused")


def _generate_flat(out: _Source, field: FieldLayout, target: str) -> None:
    """Generate the read of bytes, records, or an array of fixed-size values into `target`."""
    length = out.name("n")
    if field.compact:
        out.varint(length)
        null, number = f"{length} == 0", f"{length} - 1"
    else:
        out.add_fixed("i", length)
        null, number = f"{length} == -1", length
    if field.nullable:
        out.add_line(f"if {null}: {target} = None")
        out.add_line("else:")
        out.depth += 1
    code, size = FIXED.get(field.type, ("", 1))
    out.add_line(f"q = p + ({number}) * {size}" if field.is_array else f"q = p + {number}")
    out.add_line("if q < p or q > e: raise Refused")
    if field.type == "uuid":
        # A repeat count before `16s` would mean one longer string.
        out.add_line(f"{target} = list(unpack_from('>' + '16s' * ({number}), b, p)); p = q")
    elif field.is_array:
        out.add_line(f"{target} = list(unpack_from(f'>{{{number}}}{code}', b, p)); p = q")
    else:
        # A slice of a memoryview is a view: bytes are copied, records stay.
        taken = "bytes(b[p:q])" if field.type == "bytes" else "b[p:q]"
        out.add_line(f"{target} = {taken}; p = q")
    if field.nullable:
        out.depth -= 1


def _generate_array(out: _Source, field: FieldLayout, target: str) -> None:
    """Generate the read of an array of strings or structs into `target`."""
    count, items = out.name("n"), out.name("a")
    if field.compact:
        out.varint(count)
        null, number = f"{count} == 0", f"{count} - 1"
    else:
        out.add_fixed("i", count)
        null, number = f"{count} == -1", count
    if field.nullable:
        out.add_line(f"if {null}: {target} = None")
        out.add_line("else:")
        out.depth += 1
    size = max(1, field.element_bytes_min)
    out.add_line(f"if {number} < 0 or ({number}) * {size} > e - p: raise Refused")
    out.add_line(f"{items} = {target} = []")
    out.add_line(f"for _ in range({number}):")
    out.depth += 1
    item = out.name("o")
    if field.struct:
        _generate_struct(out, field.struct, item)
    else:
        _generate_string(out, field, item, nullable=False)
    out.add_line(f"{items}.append({item})")
    out.depth -= 2 if field.nullable else 1


def _generate_nullable_struct(out: _Source, field: FieldLayout, target: str) -> None:
    """Generate the read of a struct after its null flag into `target`.

    The flag is a byte, or in a tagged field a varint.
    """
    assert field.struct is not None
    flag, item = out.name("n"), out.name("o")
    if field.place == "tagged":
        out.varint(flag)
        out.add_line(f"if {flag} == 0: {target} = None")
    else:
        out.add_fixed("b", flag)
        out.add_line(f"if {flag} < 0: {target} = None")
    out.add_line("else:")
    out.depth += 1
    _generate_struct(out, field.struct, item)
    out.add_line(f"{target} = {item}")
    out.depth -= 1


def _generate_field(out: _Source, field: FieldLayout, target: str) -> None:
    """Generate the read of one field into the variable `target`."""
    if field.struct is None and field.type in FIXED:
        if field.is_array:
            _generate_flat(out, field, target)
        else:
            out.add_fixed(FIXED[field.type].code, target)
    elif field.is_array:
        _generate_array(out, field, target)
    elif field.struct is None:
        if field.type == "string":
            _generate_string(out, field, target, nullable=field.nullable)
        else:
            _generate_flat(out, field, target)
    elif field.nullable:
        _generate_nullable_struct(out, field, target)
    else:
        item = out.name("o")
        _generate_struct(out, field.struct, item)
        out.add_line(f"{target} = {item}")


def _default_expression(field: FieldLayout) -> str:
    """Return the source of the default of a field that the version does not contain."""
    schema = field.schema
    if schema.null_by_default:
        return "None"
    if schema.is_array:
        return "[]"
    if schema.is_struct:
        return f"C_{schema.type}()"
    if schema.type == "uuid":
        return "NO_UUID"
    return 'b""' if schema.type == "bytes" else repr(schema.default)


def _generate_struct(out: _Source, layout: StructLayout, target: str) -> None:
    """Generate the read of a struct into a new local `target`."""
    out.add_line(f"{target} = new(C_{layout.name})")
    absent: dict[str, list[str]] = {}
    for field in layout.fields:
        place = f"{target}.{attribute_name(field.schema.name)}"
        if field.place == "positional":
            _generate_field(out, field, place)
        else:
            absent.setdefault(_default_expression(field), []).append(place)
    tags = out.name("n")
    if layout.flexible:
        out.add_fixed("B", tags)
    out.flush()
    for default, places in absent.items():
        if default.endswith((")", "]")):
            for place in places:
                out.add_line(f"{place} = {default}")
        else:
            out.add_line(f"{' = '.join(places)} = {default}")
    if layout.flexible:
        _generate_tags(out, layout, target, tags)


def _generate_tags(out: _Source, layout: StructLayout, target: str, count: str) -> None:
    """Generate the read of a tagged section: known tags into the struct, unknown tags skipped."""
    if all(field.tag < 0 for field in layout.fields):
        out.add_line(f"if {count}: p = skip_tags(b, p, e, {count})")
        return
    tag, size, end = (out.name(letter) for letter in "tsq")
    out.add_line(f"if {count}:")
    out.depth += 1
    out.add_line(f"if {count} > 127: {count}, p = long_varint(b, p, {count})")
    out.add_line(f"for _ in range({count}):")
    out.depth += 1
    out.varint(tag)
    out.varint(size)
    out.add_line(f"{end} = p + {size}")
    out.add_line(f"if {end} > e: raise Refused")
    word = "if"
    for field in layout.fields:
        if field.tag < 0:
            continue
        out.add_line(f"{word} {tag} == {field.tag}:")
        out.depth += 1
        if field.place == "tagged":
            _generate_field(out, field, f"{target}.{field.attribute}")
            out.flush()
        else:
            out.add_line("raise Refused")
        out.depth -= 1
        word = "elif"
    out.add_line(f"else: p = {end}")
    out.add_line(f"if p != {end}: raise Refused")
    out.depth -= 2


def generate_decoder(layout: StructLayout) -> tuple[str, dict[str, Format]]:
    """Return a decoder's source, and the unpackers that it calls, by name."""
    out = _Source()
    _generate_struct(out, layout, "o0")
    out.add_line("return o0, p")
    return "def decode(b, p, e):\n" + "\n".join(out.lines) + "\n", out.formats


def compile_decoder(name: str, release: str, layout: StructLayout) -> Decoder:
    """Return the compiled decoder of one version of a message."""
    source, formats = generate_decoder(layout)
    scope: dict[str, object] = {
        "new": object.__new__,
        "NO_UUID": NO_UUID,
        "unpack_from": unpack_from,
    }
    scope |= vars(read_parts)
    scope |= {unpacker: made.unpack_from for unpacker, made in formats.items()}
    scope |= {f"C_{struct}": made for struct, made in struct_classes(name, release).items()}
    # The source is built only from the packed tables, never from input.
    exec(compile(source, f"<decoder of {name}>", "exec"), scope)
    return cast("Decoder", scope["decode"])
