"""Values of schemas that contain themselves: as deep as JSON may be, and never deeper."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from engine.limits import JSON_DEPTH_MAX
from engine.schemas.avro_nesting import check_nesting, is_recursive
from engine.schemas.decoding import SchemaDecoder, Undecodable
from engine.schemas.schema import Schema, SchemaKind

NODE = {"type": "record", "name": "n.Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "leaf", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "four", "type": "Four"},
        {"name": "rest", "type": ["null", "float", "double", "string", "bytes", "boolean", "int"]},
        {"name": "children", "type": {"type": "array", "items": "Tree"}},
        {"name": "named", "type": {"type": "map", "values": ["null", "Tree"]}},
    ],
}


def decoder(schema: Any) -> SchemaDecoder:
    return SchemaDecoder(None, Schema(SchemaKind.AVRO, json.dumps(schema)))


def nested(levels: int) -> bytes:
    """Return a Node with others within it, one byte each."""
    return b"\x02" * (levels - 1) + b"\x00"


def tree(rest: object, *children: Any, **named: Any) -> dict[str, Any]:
    return {
        "leaf": b"abcd", "at": 1_767_225_600_123, "kind": "B", "four": b"efgh",
        "rest": rest, "children": children, "named": named,
    }  # fmt: skip


def avro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def test_a_value_may_be_as_deep_as_json() -> None:
    value, levels = decoder(NODE).value(nested(JSON_DEPTH_MAX)), 0
    while isinstance(value, dict):
        value, levels = value["next"], levels + 1
    assert levels == JSON_DEPTH_MAX


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 5_000, 1_000_000])
def test_a_deeper_value_is_refused_before_it_is_read(levels: int) -> None:
    with pytest.raises(Undecodable, match="nested more than"):
        decoder(NODE).value(nested(levels))


def test_a_record_without_an_end_is_refused() -> None:
    endless = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "N"}]}
    with pytest.raises(Undecodable, match="nested more than"):
        decoder(endless).value(b"")


def test_all_types_are_walked_through() -> None:
    inner = [tree(rest) for rest in (1.5, "text", b"bytes", True, 7)]
    content = avro(TREE, tree(None, *inner, tree("x", *inner), key=tree("y", key=None)))
    value: Any = decoder(TREE).value(content)
    assert [child["rest"] for child in value["children"]] == [1.5, "text", "bytes", True, 7, "x"]
    assert value["named"]["key"]["named"] == {"key": None}
    for end in range(len(content)):
        with pytest.raises(Undecodable):
            decoder(TREE).value(content[:end])


def test_blocks_with_their_size_are_walked_through() -> None:
    lists = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "of", "type": {"type": "array", "items": "L"}}],
    }
    # A block of two items that says its size of two bytes, then one of one item.
    value = decoder(lists).value(b"\x03\x04\x00\x00\x02\x00\x00")
    assert value == {"of": [{"of": []}, {"of": []}, {"of": []}]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x01", "none with the number -1"),
        (b"\x04", "none with the number 2"),
        (b"\x02" * 3, "no number"),
    ],
)
def test_what_is_no_value_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        decoder(NODE).value(content)


def test_counts_and_lengths_without_content_are_refused() -> None:
    nothing = {"type": "record", "name": "E", "fields": []}
    for kind, huge in (("array", "items"), ("map", "values")):
        with pytest.raises(ValueError, match="longer than the value"):
            check_nesting(b"\xfe\xff\xff\xff\xff\x0f", {"type": kind, huge: nothing}, {})
    for content in (b"\x01abc", b"\xfe\xff\x03abc"):
        with pytest.raises(ValueError, match="no part of the value"):
            check_nesting(content, "bytes", {})


def test_only_records_within_themselves_are_recursive() -> None:
    def named(*schemas: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for schema in schemas:
            fastavro.parse_schema(schema, named_schemas=found)
        return found

    twice = {
        "type": "record",
        "name": "Pair",
        "fields": [
            {"name": "a", "type": {"type": "record", "name": "In", "fields": []}},
            {"name": "b", "type": {"type": "map", "values": ["null", "In"]}},
        ],
    }
    assert not is_recursive(named(twice))
    assert is_recursive(named(NODE))
    assert is_recursive(named(twice, TREE))
