"""A message as JSON, character for character as Kafka's tools print it.

    json_text(json_node(message, 3))

The nodes between are plain: dict, list, str, int, float, bool, None, and bytes for what becomes
base64. A caller may replace some before they become text.

| value | text |
|---|---|
| field of the version | always, in schema order; null as null |
| tagged field | only when it differs from its default |
| uuid | base64 for URLs, 22 characters |
| bytes | base64 with padding |
| records | empty text, or `<name>SizeInBytes` with the size |
| float64 | as Java prints a double; NaN and infinities as strings |
| string | Jackson's escapes: only `"`, backslash and control characters, these in upper-case hex |

Source: JsonConverterGenerator, Jackson's ObjectNode.toString.
"""

from __future__ import annotations

from binascii import b2a_base64
from math import isfinite, isinf, isnan
from typing import Any, Final, TypeAlias

from engine.naming import uuid_text
from engine.wire.errors import FieldNotInVersion
from engine.wire.layout import FieldLayout, StructLayout, message_layout
from engine.wire.structs import Struct, struct_classes
from engine.wire.writer import is_default

JsonNode: TypeAlias = "dict[str, Any] | list[Any] | str | bytes | float | bool | None"

_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(char): "\\" + letter for char, letter in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)
}


class _Form:
    """Turns the structs of one message into nodes."""

    def __init__(self, message: Struct, version: int, *, with_records: bool) -> None:
        self.message = message
        self.version = version
        self.with_records = with_records
        self.classes = struct_classes(message.message_name, message.release)

    def struct(self, layout: StructLayout, value: Any) -> dict[str, Any]:
        """Return a struct's node."""
        node: dict[str, Any] = {}
        for field in layout.fields:
            given = getattr(value, field.attribute)
            if field.place == "positional" or (
                field.place == "tagged" and not self.has_default(field, given)
            ):
                name = field.name
                if field.type == "records" and not self.with_records and given is not None:
                    node[f"{name}SizeInBytes"] = len(given)
                else:
                    node[name] = self.value(field, given)
            elif field.place == "absent" and not (
                field.schema.ignorable or self.has_default(field, given)
            ):
                raise FieldNotInVersion(self.message.message_name, field.name, self.version, given)
        return node

    def has_default(self, field: FieldLayout, given: object) -> bool:
        """Tell whether a field has its default."""
        made = None if field.is_array else self.classes.get(field.type)
        return is_default(field.schema, given, made() if made else None)

    def value(self, field: FieldLayout, given: Any) -> Any:
        """Return a field's node."""
        if field.is_array and given is not None:
            return [self.one(field, item) for item in given]
        return self.one(field, given)

    def one(self, field: FieldLayout, given: Any) -> Any:
        """Return the node of one value (of an array: of one element)."""
        if given is None:
            return None
        if field.struct:
            return self.struct(field.struct, given)
        if field.type == "uuid":
            return uuid_text(given)
        return b"" if field.type == "records" else given


def json_node(message: Struct, version: int, *, with_records: bool = True) -> dict[str, Any]:
    """Return the nodes of a message; raises UnsupportedVersion, FieldNotInVersion.

    With `with_records` false, records become their size, as in Kafka's request log.
    """
    layout = message_layout(message.message_name, version, message.release)
    return _Form(message, version, with_records=with_records).struct(layout, message)


def json_text(node: JsonNode) -> str:
    """Return nodes as compact JSON."""
    # Exact types: a bool is an int to isinstance, and subclasses never get here.
    if node is None:
        return "null"
    if node is True:
        return "true"
    if node is False:
        return "false"
    if isinstance(node, str):
        return quoted(node)
    if isinstance(node, int):
        return str(node)
    if isinstance(node, dict):
        members = ",".join(f"{quoted(name)}:{json_text(value)}" for name, value in node.items())
        return f"{{{members}}}"
    if isinstance(node, list):
        return f"[{','.join(map(json_text, node))}]"
    if isinstance(node, float):
        return java_double(node) if isfinite(node) else f'"{java_double(node)}"'
    return f'"{b2a_base64(node, newline=False).decode()}"'


def quoted(text: str) -> str:
    """Return a JSON string with Jackson's escapes."""
    return f'"{text.translate(_ESCAPES)}"'


def java_double(value: float) -> str:
    """Return a double as Java prints it: 0.001 to below 10^7 plainly, others as `1.0E7`.

    Differs: Java before 19 prints one digit too many for a few values; this is the shortest
    text, as later releases print it.
    """
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    magnitude = abs(value)
    if magnitude == 0 or 1e-3 <= magnitude < 1e7:
        # Python writes exponents only below 1e-4 and from 1e16.
        return repr(value)
    sign = "-" if value < 0 else ""
    # Two digits at least, of which the second is the nearest, then as many as it takes.
    shortest = next(text for d in range(1, 18) if float(text := f"{magnitude:.{d}e}") == magnitude)
    digits, _, exponent = shortest.partition("e")
    return f"{sign}{digits}E{int(exponent)}"
