"""Check the type of values in a JSON document; errors have the text of Kafka's tools.

Source: JsonValue, JsonObject, DecodeJson of 3.9.1.
"""

from __future__ import annotations

import json
from typing import NoReturn, TypeGuard

from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import INT_BITS, LONG_BITS

_JSON_MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"


def field_of(row: object, name: str) -> object:
    """Return a field of a JSON object.

    Errors: ToolFailure if it is missing, or `row` is no object.
    """
    fields = object_of(row)
    if name not in fields:
        raise ToolFailure(_JSON_MAPPING, f"No such field exists: `{name}`")
    return fields[name]


def object_of(value: object) -> dict[str, object]:
    """Return the value if it is an object; raises ToolFailure for another type."""
    return value if isinstance(value, dict) else _not_a("JSON object", value)


def array_of(value: object) -> list[object]:
    """Return the value if it is an array; raises ToolFailure for another type."""
    return value if isinstance(value, list) else _not_a("JSON array", value)


def whole_of(value: object) -> int:
    """Return the value if it is a 32-bit integer; raises ToolFailure for another value."""
    return int(value) if _fits(value, INT_BITS) else _not_a("`Integer` value", value)


def long_of(value: object) -> int:
    """Return the value if it is a 64-bit integer; raises ToolFailure for another value."""
    return int(value) if _fits(value, LONG_BITS) else _not_a("`Long` value", value)


def _fits(value: object, bits: int) -> TypeGuard[int]:
    """Return True if the value is an integer, not a bool, of at most this number of signed bits."""
    limit = 1 << (bits - 1)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return -limit <= value < limit


def text_of(value: object) -> str:
    """Return the value if it is a string; raises ToolFailure for another type."""
    return value if isinstance(value, str) else _not_a("`String` value", value)


def _not_a(kind: str, value: object) -> NoReturn:
    """Raise a JsonMappingException for a value that is not of `kind`, in Kafka's words."""
    shown = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    raise ToolFailure(_JSON_MAPPING, f"Expected {kind}, received {shown}")


def first_document(text: str) -> object:
    """Parse the JSON document at the start of a text, like Jackson; raises ValueError."""
    document: object
    document, _ = json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n"))
    return document
