"""Encode a message field by field, with an error that names the wrong field.

The counterpart of `reader`: used for the first messages of a kind, and to explain the refusal of a
generated encoder. A property test compares the bytes of both.
"""

from __future__ import annotations

import struct
from struct import Struct as Format
from typing import Final

from engine.wire.errors import FieldNotInVersion, UnencodableValue
from engine.wire.layout import FIXED, NO_UUID, FieldLayout, FieldValue, StructLayout
from engine.wire.schema import FieldSchema
from engine.wire.structs import Struct, shared_default, struct_classes

#: The longest string that Kafka writes, in bytes, in the compact form too.
STRING_BYTES_MAX: Final = 0x7FFF

#: The largest length or count, in bytes or elements; an int32 in the classic form.
LENGTH_MAX: Final = 0x7FFFFFFF

_FIXED_FORMATS: Final = {name: Format(f">{code}") for name, (code, _) in FIXED.items()}


def varint_bytes(value: int) -> bytes:
    """Return a number encoded as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def is_default(field: FieldSchema, value: object, default_struct: Struct | None) -> bool:
    """Return True if a field has its default; `default_struct` is the default of a struct field.

    Source: FieldSpec.generateNonDefaultValueCheck.
    """
    if field.null_by_default:
        return value is None
    if field.is_array:
        return isinstance(value, list | tuple) and not value
    if field.is_struct:
        return value == default_struct
    return value == shared_default(field)


class Writer:
    """Encodes one message at the end of `out`."""

    def __init__(self, message: str, release: str, version: int, out: bytearray) -> None:
        """Append to `out`; `release` selects the classes of structs."""
        self.message = message
        self.version = version
        self.classes = struct_classes(message, release)
        self.out = out
        #: Names of the fields from the message to the one being written, for errors.
        self.path: list[str] = []

    def wrong(self, expected: str, got: object) -> UnencodableValue:
        """Return an error that names the field being written."""
        return UnencodableValue(self.message, ".".join(self.path), self.version, expected, got)

    def write_fixed(self, type_name: str, value: FieldValue) -> None:
        """Append a value of a type of fixed size."""
        if type_name == "uuid" and len(bytes(value)) != len(NO_UUID):
            raise self.wrong("a uuid of 16 bytes", value)
        self.out += _FIXED_FORMATS[type_name].pack(value)

    def write_length(self, field: FieldLayout, length: int, limit: int) -> None:
        """Append a length or count; −1 means null. Raises UnencodableValue above `limit`."""
        if length > limit:
            raise self.wrong(f"a length of at most {limit}", length)
        if field.compact:
            self.out += varint_bytes(length + 1)
        else:
            is_short = field.type == "string" and limit == STRING_BYTES_MAX
            self.out += _FIXED_FORMATS["int16" if is_short else "int32"].pack(length)

    def write_sized(self, field: FieldLayout, value: FieldValue) -> None:
        """Append a string, bytes or records, after their length."""
        if field.type == "string":
            raw = value.encode()
            self.write_length(field, len(raw), STRING_BYTES_MAX)
        else:
            raw = memoryview(value).cast("B")
            self.write_length(field, len(raw), LENGTH_MAX)
        self.out += raw

    def write_one(self, field: FieldLayout, value: FieldValue) -> None:
        """Append one value of the field's type; for an array, one element.

        Raises UnencodableValue for a value of another type.
        """
        try:
            if field.struct:
                self.write_struct(field.struct, value)
            elif field.type in FIXED:
                self.write_fixed(field.type, value)
            else:
                self.write_sized(field, value)
        except (struct.error, AttributeError, TypeError, ValueError) as error:
            raise self.wrong(f"a {field.type}", value) from error

    def write_array(self, field: FieldLayout, value: FieldValue) -> None:
        """Append an array: its count and its elements."""
        if not isinstance(value, list | tuple):
            raise self.wrong(f"a list of {field.type}", value)
        self.write_length(field, len(value), LENGTH_MAX)
        for item in value:
            self.write_one(field, item)

    def write_value(self, field: FieldLayout, value: FieldValue) -> None:
        """Append a field's value, which may be null."""
        if value is None:
            self.write_null(field)
        elif field.is_array:
            self.write_array(field, value)
        else:
            if field.struct and field.nullable:
                self.out += b"\x01"
            self.write_one(field, value)

    def write_null(self, field: FieldLayout) -> None:
        """Append the encoding of null; raises UnencodableValue for a field that cannot be null."""
        if not field.nullable:
            raise self.wrong(f"a {field.type}", None)
        if field.struct and not field.is_array:
            self.out += b"\x00" if field.place == "tagged" else b"\xff"
        elif field.is_array:
            self.write_length(field, -1, LENGTH_MAX)
        else:
            self.write_length(field, -1, STRING_BYTES_MAX)

    def write_struct(self, layout: StructLayout, value: FieldValue) -> None:
        """Append a struct's fields and its tagged section."""
        for field in layout.fields:
            self.path.append(field.name)
            given = getattr(value, field.attribute)
            if field.place == "positional":
                self.write_value(field, given)
            elif field.place == "absent" and not field.schema.ignorable:
                self.check_absent(field, given)
            self.path.pop()
        if layout.flexible:
            self.write_tags(layout, value)

    def default_of(self, field: FieldSchema) -> Struct | None:
        """Return the default of a field that is a struct; None for other types."""
        made = self.classes.get(field.type)
        return made() if made and not field.is_array else None

    def check_absent(self, field: FieldLayout, given: object) -> None:
        """Raise FieldNotInVersion if a field that the version lacks differs from its default."""
        if not is_default(field.schema, given, self.default_of(field.schema)):
            raise FieldNotInVersion(self.message, ".".join(self.path), self.version, given)

    def write_tags(self, layout: StructLayout, value: FieldValue) -> None:
        """Append the tagged fields that differ from their defaults, by rising tag."""
        section, out = bytearray(), self.out
        count = 0
        for field in layout.placed("tagged"):
            given = getattr(value, field.attribute)
            if is_default(field.schema, given, self.default_of(field.schema)):
                continue
            count += 1
            self.path.append(field.name)
            self.out = bytearray()
            self.write_value(field, given)
            section += varint_bytes(field.tag) + varint_bytes(len(self.out)) + self.out
            self.path.pop()
        self.out = out
        self.out += varint_bytes(count) + section
