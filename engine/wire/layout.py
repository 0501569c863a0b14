"""The layout of a message in one version: which fields it has, and how each is written.

| place of a field | meaning |
|---|---|
| POSITIONAL | written at its position |
| TAGGED | written in the tagged section, only if it differs from its default |
| ABSENT | the version lacks it: decoding returns its default, encoding refuses another value |
|  | unless the field is ignorable |

| form | classic versions | flexible versions |
|---|---|---|
| string | int16 length, −1 null | unsigned varint length + 1, 0 null |
| bytes, records | int32 length, −1 null | unsigned varint length + 1, 0 null |
| array | int32 count, −1 null | unsigned varint count + 1, 0 null |
| struct | its fields | its fields, then the tagged section |
| nullable struct | int8: −1 null, else 1 | the same; as a tagged field varint: 0 null, else 1 |
| tagged section | – | unsigned varint count; each: varint tag, varint size, value |

Source: Kafka's message generator; KIP-482 (flexible versions), KIP-893 (nullable structs).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from engine.wire.errors import UnsupportedVersion
from engine.wire.schema import (
    ENGINE_RELEASE,
    FieldSchema,
    MessageSchema,
    StructSchema,
    message_schema,
)

#: The value of a field, of the type that its schema names.
FieldValue: TypeAlias = Any
Place: TypeAlias = Literal["positional", "tagged", "absent"]


#: Types of one fixed size: their letter in a `struct` format, and their bytes.
class FixedForm(NamedTuple):
    """A type of fixed size: its letter in a `struct` format, and its bytes."""

    code: str
    size: int


FIXED: Final = {
    "bool": FixedForm("?", 1),
    "int8": FixedForm("b", 1),
    "int16": FixedForm("h", 2),
    "uint16": FixedForm("H", 2),
    "int32": FixedForm("i", 4),
    "uint32": FixedForm("I", 4),
    "int64": FixedForm("q", 8),
    "float64": FixedForm("d", 8),
    "uuid": FixedForm("16s", 16),
}

#: The zero UUID means "none".
NO_UUID: Final = bytes(16)

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def attribute_name(name: str) -> str:
    """Return the Python attribute of a field: Kafka's name in snake_case (KRaft is one word)."""
    return _WORD_STARTS.sub("_", name.replace("KRaft", "Kraft")).lower()


class FieldLayout(NamedTuple):
    """One field in one version. `struct` is the layout of a struct (or of an array's structs)."""

    name: str
    attribute: str
    type: str
    is_array: bool
    place: Place
    nullable: bool
    compact: bool
    tag: int
    struct: StructLayout | None
    schema: FieldSchema

    @property
    def bytes_min(self) -> int:
        """Return the smallest number of bytes that the field takes; 0 if it is not positional."""
        if self.place != "positional":
            return 0
        if self.is_array:
            return 1 if self.compact else 4
        if self.nullable and self.struct:
            return 1
        return self.element_bytes_min

    @property
    def element_bytes_min(self) -> int:
        """Return the smallest number of bytes of one value, for an array of one element.

        It bounds the count of an array before its elements are read.
        """
        if self.struct:
            return self.struct.bytes_min
        if self.type in FIXED:
            return FIXED[self.type].size
        if self.compact:
            return 1
        return 2 if self.type == "string" else 4


class StructLayout(NamedTuple):
    """One struct in one version; `flexible` is True if a tagged section ends it."""

    name: str
    fields: tuple[FieldLayout, ...]
    flexible: bool
    bytes_min: int

    def placed(self, place: Place) -> list[FieldLayout]:
        """Return the fields with this place in wire order; tagged fields sorted by tag."""
        fields = [field for field in self.fields if field.place == place]
        return sorted(fields, key=lambda field: field.tag) if place == "tagged" else fields


def _lay_out_field(message: MessageSchema, field: FieldSchema, version: int) -> FieldLayout:
    """Return the layout of one field in a version of a message."""
    place: Place = "absent"
    if field.versions.has(version):
        place = "tagged" if field.tagged.has(version) else "positional"
    struct = None
    if field.is_struct and place != "absent":
        struct = _lay_out_struct(message, message.structs[field.type], version)
    return FieldLayout(
        name=field.name[0].lower() + field.name[1:],
        attribute=attribute_name(field.name),
        type=field.type,
        is_array=field.is_array,
        place=place,
        nullable=field.nullable.has(version),
        compact=message.flexible.has(version) and not field.plain,
        tag=field.tag,
        struct=struct,
        schema=field,
    )


def _lay_out_struct(message: MessageSchema, struct: StructSchema, version: int) -> StructLayout:
    """Return the layout of one struct in a version of a message."""
    fields = tuple(_lay_out_field(message, field, version) for field in struct.fields)
    flexible = message.flexible.has(version)
    return StructLayout(
        name=struct.name,
        fields=fields,
        flexible=flexible,
        bytes_min=sum(field.bytes_min for field in fields) + flexible,
    )


@cache
def message_layout(name: str, version: int, release: str = ENGINE_RELEASE) -> StructLayout:
    """Return a message's layout in a version; raises UnknownMessage, UnsupportedVersion."""
    message = message_schema(name, release)
    if not message.valid.has(version):
        raise UnsupportedVersion(name, version, message.valid.lowest, message.valid.highest)
    return _lay_out_struct(message, message.root, version)
