"""Messages with values drawn from their schemas, for tests over all messages and versions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random
from typing import Any

from engine.wire.layout import FIXED, FieldLayout, StructLayout, message_layout
from engine.wire.schema import RELEASES, message_names, message_schema
from engine.wire.structs import Struct, struct_classes

INTEGERS = {
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
TEXTS = ("", "a", "orders", "häßlich", "日本語", "😀", 'q"\\/\n\x00\x1f\x7f', "x" * 130, "k" * 127)
ELEMENTS_MAX = 3


def all_versions() -> Iterator[tuple[str, int, str]]:
    """Yield (message, version, release) of every version of every message."""
    for release in RELEASES:
        for name in message_names(release):
            valid = message_schema(name, release).valid
            for version in range(valid.lowest, valid.highest + 1):
                yield name, version, release


class Drawer:
    """Draws values by one source of randomness."""

    def __init__(self, rng: Random, name: str, release: str) -> None:
        self.rng = rng
        self.classes = struct_classes(name, release)

    def struct(self, layout: StructLayout) -> Struct:
        """Draw a struct; fields that the version lacks keep their default."""
        made = self.classes[layout.name]()
        for field in layout.fields:
            if field.place == "positional" or (field.place == "tagged" and self.rng.random() < 0.6):
                setattr(made, field.attribute, self.field(field))
        return made

    def field(self, field: FieldLayout) -> Any:
        """Draw a field's value."""
        if field.nullable and self.rng.random() < 0.25:
            return None
        if field.is_array:
            return [self.one(field) for _ in range(self.rng.randint(0, ELEMENTS_MAX))]
        return self.one(field)

    def one(self, field: FieldLayout) -> Any:
        """Draw one value of a field's type."""
        if field.struct:
            return self.struct(field.struct)
        if field.type in INTEGERS:
            return self.integer(*INTEGERS[field.type])
        if field.type in FIXED:
            return self.fixed(field.type)
        if field.type == "string":
            return self.rng.choice(TEXTS)
        size = self.rng.choice((0, 1, 5, 126, 127, 200))
        raw = self.rng.randbytes(size)
        return memoryview(raw) if field.type == "records" else raw

    def integer(self, low: int, high: int) -> int:
        """Draw an integer, often at an edge."""
        if self.rng.random() < 0.5:
            return self.rng.choice((low, high, max(low, -1), 0, 1))
        return self.rng.randint(low, high)

    def fixed(self, type_name: str) -> Any:
        """Draw a bool, a float or a uuid."""
        if type_name == "bool":
            return self.rng.random() < 0.5
        if type_name == "uuid":
            return self.rng.choice((bytes(16), self.rng.randbytes(16)))
        edges = (0.0, -0.0, 1.5, 1e7, 1e-3, 9.999e-4, 1e300, float("inf"), 1024.0)
        value = self.rng.choice((*edges, self.rng.uniform(-1e6, 1e6)))
        return struct.unpack(">d", struct.pack(">d", value))[0]


def drawn_message(rng: Random, name: str, version: int, release: str) -> Struct:
    """Return a message with drawn values."""
    return Drawer(rng, name, release).struct(message_layout(name, version, release))
