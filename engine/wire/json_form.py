"""A message as JSON, character for character as Kafka's tools print it.

    json_text(json_node(message, 3))

The intermediate nodes are plain: dict, list, str, int, float, bool, None, and bytes, which become
base64. A caller may replace nodes before they become text.

| value | text |
|---|---|
| field of the version | always, in schema order; null as null |
| tagged field | only if it differs from its default |
| uuid | base64 for URLs, 22 characters |
| bytes | base64 with padding |
| records | empty text, or `<name>SizeInBytes` with the size |
| float64 | as Java prints a double; NaN and infinities as strings |
| string | Jackson's escapes: only `"`, backslash and control characters, these in upper-case hex |

Source: JsonConverterGenerator, Jackson's ObjectNode.toString.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable
from functools import cache
from math import isfinite, isinf, isnan
from typing import Final, TypeAlias

from engine.ids import uuid_text
from engine.json_text import JsonObject
from engine.wire.errors import FieldNotInVersion
from engine.wire.layout import FieldLayout, FieldValue, StructLayout, message_layout
from engine.wire.structs import Struct, struct_classes
from engine.wire.writer import is_default

JsonNode: TypeAlias = "JsonObject | list[FieldValue] | str | bytes | float | bool | None"

#: Converts a struct or a value to its node.
_Maker: TypeAlias = Callable[[FieldValue], FieldValue]

#: A field's attribute, its name, the condition for leaving it out, and the converter of a non-null
#: value.
_Step: TypeAlias = tuple[str, str, _Maker | None, _Maker | None]

_ESCAPES: Final = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(char): "\\" + letter for char, letter in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)
}


class _Form:
    """Builds the functions that convert the structs of one message version to nodes."""

    def __init__(self, name: str, version: int, release: str, *, with_records: bool) -> None:
        self.name = name
        self.version = version
        self.with_records = with_records
        self.classes = struct_classes(name, release)

    def struct_converter(self, layout: StructLayout) -> _Maker:
        """Return a function that converts a struct of this layout to its node."""
        steps = [step for field in layout.fields for step in self.field_steps(field)]

        def node_of(value: FieldValue) -> JsonObject:
            """Return a struct's JSON object, without the fields to leave out."""
            node: JsonObject = {}
            for attribute, name, passed_over, convert in steps:
                given = getattr(value, attribute)
                if passed_over is None or not passed_over(given):
                    node[name] = given if convert is None or given is None else convert(given)
            return node

        return node_of

    def field_steps(self, field: FieldLayout) -> list[_Step]:
        """Return the steps that write a field to the JSON object of its struct.

        Empty for a field that this version never writes.
        """
        name, convert = field.name, self.value_converter(field)
        if field.place == "positional":
            if field.type == "records" and not self.with_records:
                return [
                    (field.attribute, name, lambda given: given is not None, None),
                    (field.attribute, f"{name}SizeInBytes", lambda given: given is None, len),
                ]
            return [(field.attribute, name, None, convert)]
        struct = None if field.is_array else self.classes.get(field.type)

        def has_default(given: FieldValue) -> bool:
            """Return True if the value is the field's default, which is left out if tagged."""
            return is_default(field.schema, given, struct() if struct else None)

        def must_have_default(given: FieldValue) -> bool:
            """Return True for a default value; raise FieldNotInVersion for any other."""
            if not has_default(given):
                raise FieldNotInVersion(self.name, name, self.version, given)
            return True

        if field.place == "tagged":
            return [(field.attribute, name, has_default, convert)]
        return [] if field.schema.ignorable else [(field.attribute, name, must_have_default, None)]

    def value_converter(self, field: FieldLayout) -> _Maker | None:
        """Return the function that converts a non-null value to its node; None: no conversion."""
        one: _Maker | None = None
        if field.struct:
            one = self.struct_converter(field.struct)
        elif field.type == "uuid":
            one = uuid_text
        elif field.type == "records":
            return _no_bytes
        if field.is_array and one:
            return lambda items, text=one: [text(item) for item in items]  # type: ignore[misc]
        return one


def _no_bytes(_records: FieldValue) -> bytes:
    """Return empty bytes: Kafka prints records as an empty text."""
    return b""


@cache
def _node_maker(name: str, version: int, release: str, *, with_records: bool) -> _Maker:
    """Return the function that makes the nodes of one version of a message."""
    form = _Form(name, version, release, with_records=with_records)
    return form.struct_converter(message_layout(name, version, release))


def json_node(message: Struct, version: int, *, with_records: bool = True) -> JsonObject:
    """Return a message as JSON nodes, as Kafka's JsonConverter does.

    With `with_records` false, records become their size, as in Kafka's request log. Raises
    UnsupportedVersion, FieldNotInVersion.
    """
    make = _node_maker(message.message_name, version, message.release, with_records=with_records)
    node: JsonObject = make(message)
    return node


def json_text(node: JsonNode) -> str:
    """Return JSON nodes as compact text, as Jackson writes them.

    Names in dicts must need no escapes.
    """
    return _TEXTS[type(node)](node)


def _object_text(node: JsonObject) -> str:
    """Return the JSON text of an object."""
    texts = _TEXTS
    members = [f'"{name}":{texts[type(value)](value)}' for name, value in node.items()]
    return f"{{{','.join(members)}}}"


def _array_text(node: list[FieldValue]) -> str:
    """Return the JSON text of an array."""
    texts = _TEXTS
    return f"[{','.join([texts[type(value)](value) for value in node])}]"


def _double_text(node: float) -> str:
    """Return the JSON text of a double, in quotes for NaN and the infinities."""
    return format_double(node) if isfinite(node) else f'"{format_double(node)}"'


def _binary_text(node: bytes) -> str:
    """Return the JSON text of bytes: base64 in quotes."""
    return f'"{b2a_base64(node, newline=False).decode()}"'


def quoted(text: str) -> str:
    """Return a JSON string with Jackson's escapes."""
    # Nearly all strings need no escapes, and this check is faster than `translate`.
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


_TEXTS: Final[dict[type, Callable[[FieldValue], str]]] = {
    str: quoted,
    int: str,
    bool: lambda node: "true" if node else "false",
    dict: _object_text,
    list: _array_text,
    bytes: _binary_text,
    float: _double_text,
    type(None): lambda _node: "null",
}


def format_double(value: float) -> str:
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
