"""Check the nesting depth of Avro values before they are decoded.

fastavro decodes nested values by recursive calls of compiled code without a limit: some thousand
levels exhaust the stack and crash the process. Only a schema with a record that contains itself has
such values; one byte may be a level. This module checks them without recursion.

Source: Avro's binary encoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from engine.json_text import TOO_DEEP, JsonObject
from engine.limits import JSON_DEPTH_MAX
from engine.records.varint import VarintTooLong, VarintTruncated, read_varlong

_RECORDS = ("record", "error")
_FIXED_BYTES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class _Blocks(NamedTuple):
    """The unread part of an array or a map: items left in the block, and the blocks after it."""

    item: object
    has_keys: bool
    item_count: int = 0


def is_recursive(named: Mapping[str, JsonObject]) -> bool:
    """Return True if any of these parsed records, given by full name, contains itself."""
    return any(of["type"] in _RECORDS and _is_within_itself(of, named) for of in named.values())


def _is_within_itself(record: JsonObject, named: Mapping[str, JsonObject]) -> bool:
    """Return True if a record type contains itself, directly or through other types.

    `named` has the schema's types by full name. Only values of such a type can be nested without
    bound.
    """
    name, seen = record["name"], set()
    waiting = [field["type"] for field in record["fields"]]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            if part == name:
                return True
            if part in named and part not in seen:
                seen.add(part)
                waiting.append(named[part])
        elif part["type"] in _RECORDS:
            waiting += [field["type"] for field in part["fields"]]
        else:
            waiting.append(part.get("items", part.get("values", part["type"])))
    return False


def check_nesting(content: bytes, schema: object, named: Mapping[str, JsonObject]) -> None:
    """Raise ValueError for an Avro value that is nested too deeply, or does not fit the schema.

    It walks over the bytes with a work list instead of recursion. `named` has the types of the
    schema by full name.
    """
    position = 0
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > JSON_DEPTH_MAX:
            raise ValueError(TOO_DEEP)
        if isinstance(part, _Blocks):
            position = _push_next_item(content, position, part, depth, waiting)
            continue
        if isinstance(part, list):
            index, position = _read_number(content, position)
            if not 0 <= index < len(part):
                raise ValueError(f"a union of {len(part)} types has none with the number {index}")
            waiting.append((part[index], depth))
            continue
        kind = part["type"] if isinstance(part, dict) else part
        if kind in _RECORDS:
            waiting += [(field["type"], depth + 1) for field in reversed(part["fields"])]
        elif kind in ("array", "map"):
            item = part["items" if kind == "array" else "values"]
            waiting.append((_Blocks(item, kind == "map"), depth + 1))
        elif kind in ("int", "long", "enum"):
            _, position = _read_number(content, position)
        elif kind in ("bytes", "string"):
            position = _skip_bytes(content, position)
        elif kind == "fixed":
            position += part["size"]
        elif kind in _FIXED_BYTES:
            position += _FIXED_BYTES[kind]
        else:
            waiting.append((named[kind] if isinstance(kind, str) else kind, depth))


def _push_next_item(
    content: bytes, position: int, blocks: _Blocks, depth: int, waiting: list[tuple[Any, int]]
) -> int:
    """Push an array's or map's next item, and the block's remaining items, to the work list.

    Returns the position of the item's value in the bytes; at the end of the blocks nothing is
    pushed.
    """
    count = blocks.item_count
    if not count:
        count, position = _read_number(content, position)
        if count < 0:
            # A negative count is followed by the block's size, for readers that skip it.
            count = -count
            _, position = _read_number(content, position)
        if not count:
            return position
        if count > len(content):
            raise ValueError(f"a block of {count} items is longer than the value")
    waiting.append((blocks._replace(item_count=count - 1), depth))
    waiting.append((blocks.item, depth))
    return _skip_bytes(content, position) if blocks.has_keys else position


def _skip_bytes(content: bytes, position: int) -> int:
    """Return the position after a value of type bytes or string: its length, then the bytes.

    Raises ValueError if it ends behind the content.
    """
    length, position = _read_number(content, position)
    if not 0 <= length <= len(content) - position:
        raise ValueError(f"{length} bytes are no part of the value")
    return position + length


def _read_number(content: bytes, position: int) -> tuple[int, int]:
    """Return a varlong (zigzag) and the position after it; raises ValueError if it is truncated."""
    try:
        return read_varlong(content, position)
    except (VarintTruncated, VarintTooLong) as error:
        raise ValueError(f"no number: {error}") from error
