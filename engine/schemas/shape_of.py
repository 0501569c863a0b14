"""The shape of the values of a schema, as `decoding.py` makes them plain.

| | STRUCT | LIST | MAP | TEXT | JSON |
|---|---|---|---|---|---|
| Avro | record | array | map | string, enum, bytes, fixed, logical types | unions of several |
| Protobuf | message | repeated | map | string, enum, bytes, uint64, times | google.protobuf's |
| JSON Schema | properties | items | – | string | all that has another form |

A type within itself is JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.schemas.avro import parsed_avro
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

_OF_AVRO = {
    "boolean": BOOLEAN, "int": LONG, "long": LONG, "float": DOUBLE, "double": DOUBLE,
    "string": TEXT, "bytes": TEXT, "fixed": TEXT, "enum": TEXT,
}  # fmt: skip
_OF_JSON_SCHEMA = {"boolean": BOOLEAN, "integer": LONG, "number": DOUBLE, "string": TEXT}
_TEXTS_OF_GOOGLE = frozenset(("Timestamp", "Duration", "FieldMask"))


def shape_of(schema: Schema, what: str, *, is_enveloped: bool) -> Shape:
    """Return the shape of a schema's values; raises UnusableSchema."""
    if schema.kind is SchemaKind.AVRO:
        parsed, named = parsed_avro(schema, what)
        return _avro(parsed, named, frozenset())
    if schema.kind is SchemaKind.PROTOBUF:
        from engine.schemas.protobuf import protobuf_messages

        messages = protobuf_messages(schema, what, is_enveloped=is_enveloped)
        return merged(_message(message, frozenset()) for message in messages)
    return _json_schema(_document(schema, what))


def _avro(schema: Any, named: Mapping[str, Any], within: frozenset[str]) -> Shape:
    """Return the shape of an Avro schema; `within` are the records around it.

    A record within itself is JSON. A union of null and one type is that type.
    """
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind not in ("null", {"type": "null"})]
        return _avro(kinds[0], named, within) if len(kinds) == 1 else JSON
    if isinstance(schema, str):
        if schema in _OF_AVRO:
            return _OF_AVRO[schema]
        return _avro(named[schema], named, within) if schema in named else JSON
    kind = schema["type"]
    if "logicalType" in schema:
        # A logical type that fastavro does not know leaves the value as it is: JSON has both.
        return JSON if kind in ("int", "long") and not _is_time(schema["logicalType"]) else TEXT
    if kind in ("record", "error"):
        if schema["name"] in within:
            return JSON
        inner = within | {schema["name"]}
        return struct_of((f["name"], _avro(f["type"], named, inner)) for f in schema["fields"])
    if kind == "array":
        return Shape(ShapeKind.LIST, item=_avro(schema["items"], named, within))
    if kind == "map":
        return Shape(ShapeKind.MAP, item=_avro(schema["values"], named, within))
    return _OF_AVRO.get(kind, JSON) if isinstance(kind, str) else _avro(kind, named, within)


def _is_time(name: str) -> bool:
    return name == "date" or name.startswith(("time-", "timestamp-", "local-timestamp-"))


def _message(descriptor: Any, within: frozenset[str]) -> Shape:
    name = descriptor.full_name
    if descriptor.file.package == "google.protobuf":
        return TEXT if descriptor.name in _TEXTS_OF_GOOGLE else JSON
    if name in within:
        return JSON
    inner = within | {name}
    return struct_of((field.name, _field(field, inner)) for field in descriptor.fields)


def _field(field: Any, within: frozenset[str]) -> Shape:
    if _is_repeated(field):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            item = _single(field.message_type.fields_by_name["value"], within)
            return Shape(ShapeKind.MAP, item=item)
        return Shape(ShapeKind.LIST, item=_single(field, within))
    return _single(field, within)


def _is_repeated(field: Any) -> bool:
    # Newer runtimes have a property and warn of the label.
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


def _single(field: Any, within: frozenset[str]) -> Shape:
    if field.message_type is not None:
        return _message(field.message_type, within)
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64, field.CPPTYPE_UINT32):
        return LONG
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return DOUBLE
    return BOOLEAN if field.cpp_type == field.CPPTYPE_BOOL else TEXT


def _document(schema: Schema, what: str) -> Any:
    import json

    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise UnusableSchema(what, f"it is no JSON Schema: {error}") from error


def _json_schema(schema: Any) -> Shape:
    """Return the shape of a JSON schema; JSON where several types are possible."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return JSON
    for keyword in ("oneOf", "anyOf"):
        if isinstance(schema.get(keyword), list) and not schema.get("properties"):
            kinds = [kind for kind in schema[keyword] if kind != {"type": "null"}]
            return _json_schema(kinds[0]) if len(kinds) == 1 else JSON
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [name for name in kind if name != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "object" and isinstance(schema.get("properties"), dict):
        fields = ((name, _json_schema(of)) for name, of in schema["properties"].items())
        return struct_of(fields, is_open=schema.get("additionalProperties") is not False)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return Shape(ShapeKind.LIST, item=_json_schema(schema["items"]))
    return _OF_JSON_SCHEMA.get(kind, JSON) if isinstance(kind, str) else JSON
