"""The shapes of decoded values as columns, and the adaptation of plain values to them.

| shape | a column of | a plain value that fits |
|---|---|---|
| STRUCT | fields by name | an object; a missing field is null |
| LIST, MAP | items; text keys and items | a list; an object, as pairs |
| TEXT, LONG, DOUBLE, BOOLEAN | values of that type | of that type; a LONG also as text (Protobuf) |
| JSON | the text of any JSON | any value |

Several schemas are merged to one shape: objects get all fields, differing types become JSON. A
value that does not fit raises ValueError, and is never truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from functools import reduce
from typing import NamedTuple

from engine.json_text import json_text

_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
#: The text form in which Protobuf's JSON writes 64-bit integers.
_LONG_TEXT = re.compile(r"-?\d{1,19}", re.ASCII)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


class ShapeKind(Enum):
    """The kinds of shapes."""

    STRUCT = "struct"
    LIST = "list"
    MAP = "map"
    TEXT = "string"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    JSON = "json"


class Shape(NamedTuple):
    """One type: for STRUCT with its fields, for LIST and MAP with the type of their items.

    Values of an open STRUCT lose the fields that it lacks; a closed STRUCT refuses such values.
    """

    kind: ShapeKind
    fields: tuple[tuple[str, Shape], ...] = ()
    item: Shape | None = None
    is_open: bool = False


TEXT, LONG = Shape(ShapeKind.TEXT), Shape(ShapeKind.LONG)
DOUBLE, BOOLEAN = Shape(ShapeKind.DOUBLE), Shape(ShapeKind.BOOLEAN)
JSON = Shape(ShapeKind.JSON)


def struct_of(fields: Iterable[tuple[str, Shape]], *, is_open: bool = False) -> Shape:
    """Return a STRUCT with a column for each field.

    It is JSON without fields, or with names that an engine rejects: those that differ only in case,
    and those that `_is_name` excludes. `is_open` permits values with other fields.
    """
    found = tuple(fields)
    if not found or len({name.lower() for name, _ in found}) < len(found):
        return JSON
    if not all(_is_name(name) for name, _ in found):
        return JSON
    return Shape(ShapeKind.STRUCT, found, is_open=is_open)


def _is_name(text: str) -> bool:
    """Return True if a text can name a column: not empty, without NUL and lone surrogates."""
    return (
        bool(text) and "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)
    )


def merged(shapes: Iterable[Shape]) -> Shape:
    """Return the shape that fits the values of all these shapes; JSON for no shapes."""
    found = list(shapes)
    return reduce(_merge, found) if found else JSON


def _merge(left: Shape, right: Shape) -> Shape:
    """Return the shape that fits the values of both shapes.

    LONG and DOUBLE become DOUBLE; the fields of two STRUCTs are united; other different kinds
    become JSON.
    """
    if left == right:
        return left
    kinds = {left.kind, right.kind}
    if kinds == {ShapeKind.LONG, ShapeKind.DOUBLE}:
        return DOUBLE
    if len(kinds) > 1:
        return JSON
    if left.kind is ShapeKind.STRUCT:
        fields = dict(left.fields)
        for name, shape in right.fields:
            fields[name] = _merge(fields[name], shape) if name in fields else shape
        return struct_of(fields.items(), is_open=left.is_open or right.is_open)
    if left.item is not None and right.item is not None:
        return left._replace(item=_merge(left.item, right.item))
    return left


def fit_to_shape(shape: Shape, value: object) -> object:
    """Return a decoded value as its column stores it; raises ValueError for a misfit.

    A map becomes a list of pairs, as Arrow requires.
    """
    if value is None:
        return None
    if shape.kind is ShapeKind.JSON:
        return json_text(value)
    if shape.kind is ShapeKind.STRUCT:
        return _fit_struct(shape, value)
    if shape.kind is ShapeKind.LIST and isinstance(value, list) and shape.item is not None:
        return [fit_to_shape(shape.item, item) for item in value]
    if shape.kind is ShapeKind.MAP and isinstance(value, dict) and shape.item is not None:
        return [(str(key), fit_to_shape(shape.item, item)) for key, item in value.items()]
    if shape.kind is ShapeKind.TEXT:
        return value if isinstance(value, str) else json_text(value)
    if shape.kind is ShapeKind.BOOLEAN and isinstance(value, bool):
        return value
    if shape.kind is ShapeKind.LONG:
        return _fit_long(value)
    if shape.kind is ShapeKind.DOUBLE:
        return _fit_double(value)
    raise _misfit(shape, value)


def _fit_struct(shape: Shape, value: object) -> object:
    """Return a dict with the value of each column of a STRUCT, None for a missing field.

    Raises ValueError if the value is no object, or has a field without a column and `is_open` is
    False.
    """
    if not isinstance(value, dict):
        raise _misfit(shape, value)
    fields = dict(shape.fields)
    if not shape.is_open and (unknown := value.keys() - fields.keys()):
        raise ValueError(f"it has a field {min(unknown)!r} more than the column")
    return {name: fit_to_shape(of, value.get(name)) for name, of in fields.items()}


def _fit_long(value: object) -> int:
    """Return a 64-bit integer from a number without fraction or its text.

    Raises ValueError for any other value.
    """
    if (isinstance(value, str) and _LONG_TEXT.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer()
    ):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not _LONG_MIN <= value <= _LONG_MAX:
        raise _misfit(LONG, value)
    return value


def _fit_double(value: object) -> float:
    """Return a float from a number, or from the text of NaN or infinity; raises ValueError."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _misfit(DOUBLE, value)
    try:
        return float(value)
    except OverflowError:
        raise _misfit(DOUBLE, value) from None


def _misfit(shape: Shape, value: object) -> ValueError:
    """Return the error for a value that does not have the shape, with its first 40 characters."""
    return ValueError(f"{str(value)[:40]!r} is no {shape.kind.value}")
