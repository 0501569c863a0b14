"""Shapes of schemas, and plain values that fit them."""

from __future__ import annotations

import json

import pytest

from engine.limits import SHAPE_DEPTH_MAX, SHAPE_FIELDS_MAX
from engine.schemas.decoding import SchemaDecoder
from engine.schemas.schema import Schema, SchemaKind
from engine.schemas.shape import (
    BOOLEAN,
    DOUBLE,
    JSON,
    LONG,
    TEXT,
    Shape,
    ShapeKind,
    fit_to_shape,
    merged,
    struct_of,
)
from engine.schemas.shape_of import shape_of

AVRO = """{"type": "record", "name": "n.Node", "fields": [
  {"name": "next", "type": ["null", "Node"]},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
  {"name": "either", "type": ["int", "string"]},
  {"name": "marks", "type": {"type": "map", "values": "double"}},
  {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}}]}"""
PROTO = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Node {
  enum K { A = 0; }
  Node next = 1;
  google.protobuf.Timestamp at = 2;
  uint64 large = 3;
  repeated double marks = 4;
  map<int32, K> kinds = 5;
  google.protobuf.Int64Value boxed = 6;
  bool is_there = 7;
}"""
JSON_SCHEMA = """{"type": "object", "additionalProperties": false, "properties": {
  "a": {"oneOf": [{"type": "null"}, {"type": "integer"}]},
  "b": {"type": ["string", "null"]},
  "c": {"type": "array", "items": {"type": "boolean"}},
  "d": {"$ref": "#/definitions/d"},
  "e": {"type": "object"}}}"""


def _list(item: Shape) -> Shape:
    return Shape(ShapeKind.LIST, item=item)


def _map(item: Shape) -> Shape:
    return Shape(ShapeKind.MAP, item=item)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (SchemaKind.AVRO, AVRO,
         {"next": JSON, "at": TEXT, "price": TEXT, "either": JSON, "marks": _map(DOUBLE),
          "kind": TEXT}),
        (SchemaKind.PROTOBUF, PROTO,
         {"next": JSON, "at": TEXT, "large": TEXT, "marks": _list(DOUBLE), "kinds": _map(TEXT),
          "boxed": JSON, "is_there": BOOLEAN}),
        (SchemaKind.JSON, JSON_SCHEMA,
         {"a": LONG, "b": TEXT, "c": _list(BOOLEAN), "d": JSON, "e": JSON}),
    ],
)  # fmt: skip
def test_schemas_have_shapes(kind: SchemaKind, text: str, expected: dict[str, Shape]) -> None:
    shape = shape_of(Schema(kind, text), "the schema", is_enveloped=False)
    assert expected == dict(shape.fields)
    assert not shape.is_open


def _depth(shape: Shape) -> int:
    """Return how many structs are in each other at most."""
    return max((1 + _depth(of) for _, of in shape.fields), default=0)


def _field_count(shape: Shape) -> int:
    return len(shape.fields) + sum(_field_count(of) for _, of in shape.fields)


def _in_each_other(count: int) -> str:
    """Return an Avro schema of records, each of which has fields of all others."""
    seen: set[int] = set()

    def record(number: int) -> dict[str, object]:
        seen.add(number)
        fields = [
            {"name": f"f{n}", "type": ["null", f"T{n}" if n in seen else record(n)]}
            for n in range(count)
        ]
        return {"type": "record", "name": f"T{number}", "fields": fields}

    return json.dumps(record(0))


def test_records_in_each_other_have_some_levels_of_fields() -> None:
    few = shape_of(Schema(SchemaKind.AVRO, _in_each_other(3)), "", is_enveloped=False)
    assert 3 == _depth(few)
    many = shape_of(Schema(SchemaKind.AVRO, _in_each_other(20)), "", is_enveloped=False)
    assert 3 == _depth(many)
    assert [f"f{n}" for n in range(20)] == [name for name, _ in many.fields]
    assert _field_count(many) <= SHAPE_FIELDS_MAX


def test_messages_in_each_other_have_some_levels_of_fields() -> None:
    fields = " ".join(f"repeated M{n} f{n} = {n + 1};" for n in range(20))
    messages = " ".join(f"message M{n} {{ {fields} map<string, M{n}> m = 99; }}" for n in range(20))
    schema = Schema(SchemaKind.PROTOBUF, f'syntax = "proto3"; {messages}')
    shape = shape_of(schema, "", is_enveloped=False)
    assert 21 == len(shape.fields)
    assert _list(JSON) == dict(shape.fields)["f0"]
    assert ShapeKind.STRUCT is getattr(dict(shape.fields)["f1"].item, "kind", None)


def test_extensions_of_a_message_are_fields() -> None:
    text = """syntax = "proto2"; package p;
    message A { optional int32 a = 1; extensions 100 to 199; }
    message B { extend A { repeated A b = 100; } }
    extend A { optional int64 c = 101; }"""
    schema = Schema(SchemaKind.PROTOBUF, text)
    shape = shape_of(schema, "", is_enveloped=False)
    assert {"a": LONG, "[p.B.b]": _list(JSON), "[p.c]": LONG} == dict(shape.fields)
    # a is 5, c is 9.
    value = SchemaDecoder(None, schema).value(b"\x08\x05\xa8\x06\x09")
    assert {"a": 5, "[p.B.b]": None, "[p.c]": 9} == fit_to_shape(shape, value)


@pytest.mark.parametrize("levels", [SHAPE_DEPTH_MAX, SHAPE_DEPTH_MAX + 1, 200])
def test_what_lies_too_deep_is_json(levels: int) -> None:
    inner: object = {"type": "integer"}
    for _ in range(levels):
        inner = {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"a": inner}}]}
    shape = shape_of(Schema(SchemaKind.JSON, json.dumps(inner)), "", is_enveloped=False)
    assert SHAPE_DEPTH_MAX == _depth(shape)
    while shape.fields:
        ((_, shape),) = shape.fields
    assert shape == (LONG if levels == SHAPE_DEPTH_MAX else JSON)


def test_names_by_a_pattern_are_allowed_beside_columns() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    shape = shape_of(Schema(SchemaKind.JSON, json.dumps(schema)), "", is_enveloped=False)
    assert {"a": 1} == fit_to_shape(shape, {"a": 1, "x-b": "c"})


def test_shapes_merge_field_by_field() -> None:
    left = struct_of([("a", LONG), ("b", TEXT), ("c", _list(LONG))])
    right = struct_of([("a", DOUBLE), ("b", BOOLEAN), ("c", _list(DOUBLE)), ("d", TEXT)])
    fields = {"a": DOUBLE, "b": JSON, "c": _list(DOUBLE), "d": TEXT}
    assert fields == dict(merged([left, right]).fields)
    assert JSON == merged([left, TEXT])
    assert JSON == merged([])


def test_names_that_differ_in_case_alone_are_no_columns() -> None:
    assert JSON == struct_of([("id", LONG), ("ID", LONG)])
    assert JSON == struct_of([])
    for name in ("", "a\0", "\ud800"):
        assert JSON == struct_of([("id", LONG), (name, LONG)])


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        (LONG, "-9223372036854775808", -(1 << 63)),
        (LONG, 3.0, 3),
        (DOUBLE, "-Infinity", float("-inf")),
        (TEXT, 7, "7"),
        (JSON, {"a": [1]}, '{"a": [1]}'),
        (_map(LONG), {"x": 1}, [("x", 1)]),
        (struct_of([("a", _list(LONG))]), {"a": [1, None]}, {"a": [1, None]}),
        (struct_of([("a", LONG)], is_open=True), {"b": 1}, {"a": None}),
    ],
)
def test_values_fit(shape: Shape, value: object, expected: object) -> None:
    assert expected == fit_to_shape(shape, value)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (LONG, 1 << 63),
        (LONG, 1.5),
        (LONG, True),
        (LONG, "x"),
        (LONG, "1_2"),
        (LONG, " 12"),
        (LONG, "9" * 5000),
        (DOUBLE, 10**400),
        (BOOLEAN, 1),
        (_list(LONG), {"a": 1}),
        (struct_of([("a", LONG)]), {"a": 1, "b": 2}),
        (struct_of([("a", LONG)]), [1]),
    ],
)
def test_values_that_do_not_fit_are_no_part_of_a_column(shape: Shape, value: object) -> None:
    with pytest.raises(ValueError):
        fit_to_shape(shape, value)
