"""The shape of a schema's values, in the plain form that `decoding.py` returns.

| | STRUCT | LIST | MAP | TEXT | JSON |
|---|---|---|---|---|---|
| Avro | record | array | map | string, enum, bytes, fixed, logical types | unions of several |
| Protobuf | message | repeated | map | string, enum, bytes, uint64, times | google.protobuf's |
| JSON Schema | properties | items | – | string | any other form |

A type inside itself is JSON, and so are types deeper than SHAPE_DEPTH_MAX. In a schema with more
than SHAPE_FIELDS_MAX fields the depth is reduced until it has fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.json_text import JsonObject
from engine.limits import SHAPE_DEPTH_MAX, SHAPE_FIELDS_MAX
from engine.schemas.avro import parse_avro
from engine.schemas.schema import Schema, SchemaKind, UnusableSchema
from engine.schemas.shape import (
    BOOLEAN,
    DOUBLE,
    JSON,
    LONG,
    TEXT,
    Shape,
    ShapeKind,
    merged,
    struct_of,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

_OF_AVRO = {
    "boolean": BOOLEAN, "int": LONG, "long": LONG, "float": DOUBLE, "double": DOUBLE,
    "string": TEXT, "bytes": TEXT, "fixed": TEXT, "enum": TEXT,
}  # fmt: skip
_OF_JSON_SCHEMA = {"boolean": BOOLEAN, "integer": LONG, "number": DOUBLE, "string": TEXT}
#: Number of levels tried next for a shape with too many fields; then one level less each time.
_LEVELS_OF_MANY = 8
_TEXTS_OF_GOOGLE = frozenset(("Timestamp", "Duration", "FieldMask"))


class _TooManyFields(Exception):
    """A shape has more than SHAPE_FIELDS_MAX fields."""


class _Fields:
    """Counts the fields of a shape."""

    def __init__(self) -> None:
        self._left = SHAPE_FIELDS_MAX

    def take(self, count: int) -> None:
        """Count some more fields against the limit of a shape; raises _TooManyFields above it."""
        self._left -= count
        if self._left < 0:
            raise _TooManyFields


class _Around(NamedTuple):
    """The context of a type: the counter of fields, the levels left, and the enclosing types."""

    fields: _Fields
    levels: int
    within: frozenset[str] = frozenset()

    def inside(self, levels: int = 1, name: str | None = None) -> _Around:
        """Return the context for a type nested in the current one, with `levels` fewer levels left.

        `name` is that of the current type, None if it has none: it is added to the enclosing types.
        """
        within = self.within if name is None else self.within | {name}
        return self._replace(levels=self.levels - levels, within=within)


def shape_of(schema: Schema, what: str, *, is_enveloped: bool) -> Shape:
    """Return the shape (the columns) of the values of a schema; raises UnusableSchema.

    `what` names the schema in errors. With `is_enveloped` a Protobuf value may be any outermost
    message, so the shape is that of all.
    """
    if schema.kind is SchemaKind.AVRO:
        parsed, named = parse_avro(schema, what)
        return _within_limits(lambda around: _avro_shape(parsed, named, around))
    if schema.kind is SchemaKind.PROTOBUF:
        from engine.schemas.protobuf import protobuf_messages

        messages = protobuf_messages(schema, what, is_enveloped=is_enveloped)
        return merged(_within_limits(partial(_message_shape, message)) for message in messages)
    return _within_limits(partial(_json_shape, _parse_document(schema, what)))


def _within_limits(shape_at: Callable[[_Around], Shape]) -> Shape:
    """Return the shape that `shape_at` makes, with as many levels as the limit of fields allows.

    It is JSON if one level has too many fields already.
    """
    levels = SHAPE_DEPTH_MAX
    while levels > 0:
        try:
            return shape_at(_Around(_Fields(), levels))
        except _TooManyFields:
            levels = min(levels - 1, _LEVELS_OF_MANY)
    return JSON


def _avro_shape(schema: Any, named: Mapping[str, JsonObject], around: _Around) -> Shape:
    """Return the shape of a parsed Avro schema; `named` has its types by full name.

    A record inside itself is JSON. A union of null and one type is that type.
    """
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind not in ("null", {"type": "null"})]
        return _avro_shape(kinds[0], named, around) if len(kinds) == 1 else JSON
    if isinstance(schema, str):
        if schema in _OF_AVRO:
            return _OF_AVRO[schema]
        return _avro_shape(named[schema], named, around) if schema in named else JSON
    kind = schema["type"]
    if "logicalType" in schema:
        # A logical type that fastavro does not know leaves the value as it is: JSON has both.
        return JSON if kind in ("int", "long") and not _is_time(schema["logicalType"]) else TEXT
    if kind in ("record", "error"):
        fields = schema["fields"]
        if around.levels < 1 or schema["name"] in around.within:
            return JSON
        around.fields.take(len(fields))
        inner = around.inside(name=schema["name"])
        return struct_of((f["name"], _avro_shape(f["type"], named, inner)) for f in fields)
    if kind == "array":
        return _list(around, lambda inner: _avro_shape(schema["items"], named, inner))
    if kind == "map":
        return _map(around, lambda inner: _avro_shape(schema["values"], named, inner))
    return _OF_AVRO.get(kind, JSON) if isinstance(kind, str) else _avro_shape(kind, named, around)


def _list(around: _Around, item_at: Callable[[_Around], Shape]) -> Shape:
    """Return a LIST of the shape that `item_at` makes for the nested level; JSON if too deep."""
    if around.levels < 1:
        return JSON
    return Shape(ShapeKind.LIST, item=item_at(around.inside()))


def _map(around: _Around, item_at: Callable[[_Around], Shape]) -> Shape:
    """Return a MAP to the shape that `item_at` makes for the nested level; JSON if too deep.

    A MAP takes two levels.
    """
    # A map is a list of pairs.
    if around.levels < 2:
        return JSON
    return Shape(ShapeKind.MAP, item=item_at(around.inside(levels=2)))


def _is_time(name: str) -> bool:
    """Return True if an Avro logical type is a date or a time, including local times."""
    return name == "date" or name.startswith(("time-", "timestamp-", "local-timestamp-"))


def _message_shape(descriptor: Descriptor, around: _Around) -> Shape:
    """Return the STRUCT of a Protobuf message, including its extensions.

    It is JSON if the message is inside itself or too deep.
    """
    name = descriptor.full_name
    if descriptor.file.package == "google.protobuf":
        return TEXT if descriptor.name in _TEXTS_OF_GOOGLE else JSON
    if around.levels < 1 or name in around.within:
        return JSON
    fields = [(field.name, field) for field in descriptor.fields]
    extensions = descriptor.file.pool.FindAllExtensions(descriptor)
    extensions = sorted(extensions, key=lambda field: int(field.number))
    # Names of extensions are in brackets, as in Protobuf's JSON.
    fields += [(f"[{field.full_name}]", field) for field in extensions]
    around.fields.take(len(fields))
    inner = around.inside(name=name)
    return struct_of((name, _field_shape(field, inner)) for name, field in fields)


def _field_shape(field: FieldDescriptor, around: _Around) -> Shape:
    """Return the shape of a Protobuf field: a MAP, a LIST if repeated, or that of one value."""
    if _is_repeated(field):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            return _map(around, lambda inner: _single_shape(value, inner))
        return _list(around, lambda inner: _single_shape(field, inner))
    return _single_shape(field, around)


def _is_repeated(field: FieldDescriptor) -> bool:
    """Return True for a repeated field, also by older runtimes of Protobuf."""
    # Newer runtimes have a property and warn of the label.
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


def _single_shape(field: FieldDescriptor, around: _Around) -> Shape:
    """Return the shape of one value of a Protobuf field: STRUCT, LONG, DOUBLE, BOOLEAN or TEXT."""
    if field.message_type is not None:
        return _message_shape(field.message_type, around)
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT32):
        return LONG
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return DOUBLE
    return BOOLEAN if field.cpp_type == field.CPPTYPE_BOOL else TEXT


def _parse_document(schema: Schema, what: str) -> object:
    """Return a JSON Schema as a dict; raises UnusableSchema."""
    import json

    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise UnusableSchema(what, f"it is no JSON Schema: {error}") from error


def _json_shape(schema: object, around: _Around) -> Shape:
    """Return the shape of values of a JSON Schema; JSON if several types are possible."""
    schema = _only_kind(schema)
    if not isinstance(schema, dict) or "$ref" in schema:
        return JSON
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [name for name in kind if name != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return _object_shape(schema, around)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return _list(around, lambda inner: _json_shape(schema["items"], inner))
    return _OF_JSON_SCHEMA.get(kind, JSON) if isinstance(kind, str) else JSON


def _only_kind(schema: object) -> object:
    """Return the only alternative besides null of a `oneOf` or `anyOf` in a JSON Schema.

    None if there are several. A schema without alternatives is returned unchanged.
    """
    while isinstance(schema, dict) and not ("$ref" in schema or schema.get("properties")):
        lists = [schema[word] for word in ("oneOf", "anyOf") if isinstance(schema.get(word), list)]
        if not lists:
            break
        kinds = [kind for kind in lists[0] if kind != {"type": "null"}]
        schema = kinds[0] if len(kinds) == 1 else None
    return schema


def _object_shape(schema: JsonObject, around: _Around) -> Shape:
    """Return the STRUCT of the properties in a JSON Schema; JSON if it would be too deep."""
    if around.levels < 1:
        return JSON
    properties = schema["properties"]
    around.fields.take(len(properties))
    fields = ((name, _json_shape(of, around.inside())) for name, of in properties.items())
    # Properties named by a pattern are no columns, but are allowed.
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return struct_of(fields, is_open=not is_closed)
