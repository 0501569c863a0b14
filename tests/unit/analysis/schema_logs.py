"""A log whose values are of several schemas, of none, and of wrong ones."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro

from engine.analysis.value_decoding import ValueDecoding, by_one
from engine.records.builder import BatchBuilder
from engine.schemas.schema import NoSuchSchema, Schema, SchemaKind
from tests.unit.log.logs import TIME_MS, name_of

AVRO = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"},
  {"name": "name", "type": ["null", "string"]},
  {"name": "tags", "type": {"type": "array", "items": "string"}},
  {"name": "user", "type": ["null", {"type": "record", "name": "User",
    "fields": [{"name": "age", "type": "int"}]}]}]}"""
JSON_SCHEMA = """{"type": "object", "properties":
  {"id": {"type": "integer"}, "total": {"type": "integer"}}}"""
PROTO = 'syntax = "proto3"; message Order { int32 id = 1; int64 total = 2; }'
SCHEMAS = {
    1: Schema(SchemaKind.AVRO, AVRO),
    2: Schema(SchemaKind.JSON, JSON_SCHEMA),
    3: Schema(SchemaKind.PROTOBUF, PROTO),
}


class SchemaTable:
    """A source of these schemas."""

    def schema(self, schema_id: int) -> Schema:
        if schema_id not in SCHEMAS:
            raise NoSuchSchema(schema_id, "here")
        return SCHEMAS[schema_id]


def _avro(schema_id: int, value: Any) -> bytes:
    out = io.BytesIO()
    out.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(AVRO)), value)
    return out.getvalue()


def values() -> tuple[bytes | None, ...]:
    """Return the values, one an offset."""
    order = {"id": 7, "name": "Ann", "tags": ["a"], "user": {"age": 41}}
    return (
        _avro(1, order),
        b'\0\0\0\0\x02{"id": 8, "total": 12, "more": [1]}',
        # total = 2^40; the id is 0 and not there.
        b"\0\0\0\0\x03\0\x10\x80\x80\x80\x80\x80\x20",
        b"\0\0\0\0\x09{}",
        b"\0\0\0\0\x01\xff\xff\xff\xff",
        b"no schema",
        None,
        b'{"x" : 1}',
    )


def write_fields_log(folder: Path) -> ValueDecoding:
    """Write a log whose values have fields named as columns; returns how they are read."""
    builder = BatchBuilder()
    for number in range(4):
        fields = {"offset": number + 100, "partition": number + 50, "topic": f"x{number}",
                  "timestampMs": number}  # fmt: skip
        builder.append(TIME_MS + number, b"k", json.dumps(fields).encode())
    (folder / "orders-0").mkdir()
    (folder / "orders-0" / name_of(0)).write_bytes(builder.build())
    kinds = {name: {"type": "integer"} for name in ("offset", "partition", "timestampMs")}
    schema = {"type": "object", "properties": {**kinds, "topic": {"type": "string"}}}
    return by_one(Schema(SchemaKind.JSON, json.dumps(schema)))


def write_keyed_log(folder: Path) -> Path:
    """Write a log whose keys are those values, the null one last; returns its directory."""
    builder = BatchBuilder()
    for number, key in enumerate(values()):
        builder.append(TIME_MS + number, key, b'{"x": %d}' % number)
    (folder / "keyed-0").mkdir()
    (folder / "keyed-0" / name_of(0)).write_bytes(builder.build())
    return folder


def write_log(folder: Path) -> Path:
    """Write a log directory; returns it."""
    builder = BatchBuilder()
    key = _avro(1, {"id": 1, "name": None, "tags": [], "user": None})
    for number, value in enumerate(values()):
        builder.append(TIME_MS + number, key if number == 0 else b"plain", value)
    (folder / "orders-0").mkdir()
    (folder / "orders-0" / name_of(0)).write_bytes(builder.build())
    return folder
