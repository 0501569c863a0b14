"""Anonymised columns of an export: hashed, masked or left out.

| how | text, key, value; value of each header | numbers and others |
|---|---|---|
| hash | SHA-256 in hex, or HMAC-SHA-256 with a key: the same for the same | refused |
| mask | `***` | refused |
| drop | the column is left out; a field of `decoded_key`, `decoded_value` is null | the same |

`decoded_value.user.name` is a field, of each element where there is a list on the way. The value
itself says as much, so it has to be anonymised with its fields. Null stays null, and the columns
that tell of an anonymised one are null: `value_hash`, `decoded_value`, `decoding_problem`.
A hash without a key hides nothing that can be guessed: everybody can hash all telephone numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.analysis.columns import RECORDS, chosen
from engine.analysis.view_column import ColumnType, ViewColumn
from engine.errors import EngineError
from engine.records.anonymising import DROP, METHODS, anonymised_content
from engine.schemas.shape import Shape, ShapeKind

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("binary", "string", "headers")
_TEXT_SHAPES = (ShapeKind.TEXT, ShapeKind.JSON)
#: Columns that say something of other ones.
_TELLS = {
    "value_hash": ("value",),
    "decoded_key": ("key",),
    "decoded_value": ("value",),
    "decoding_problem": ("key", "value", "decoded_key", "decoded_value"),
}


class WrongAnonymising(EngineError):
    """The anonymisation was not understood, or is impossible for a column."""

    exit_code = 2

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(f"--anonymise {text}: {rule}")
        self.text = text


class Anonymised(NamedTuple):
    """A column of the view `records`, or a field in it, with its method of anonymisation."""

    column: str
    method: str
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the column's name, with those of the fields behind it."""
        return ".".join((self.column, *self.fields))


def anonymised_columns(
    texts: Sequence[str], columns: tuple[ViewColumn, ...] = RECORDS
) -> tuple[Anonymised, ...]:
    """Parse texts like `key=hash` into columns and methods.

    Raises WrongAnonymising and UnknownColumn.
    """
    found: dict[str, Anonymised] = {}
    for text in texts:
        path, _, method = text.partition("=")
        if method not in METHODS:
            raise WrongAnonymising(text, f"expected COLUMN= and one of {', '.join(METHODS)}")
        name, *fields = path.strip().split(".")
        (column,) = chosen(columns, [name])
        entry = Anonymised(column.name, method, tuple(fields))
        kind = _field_type(text, column.type, fields)
        is_text = kind in _TEXTS or (isinstance(kind, Shape) and kind.kind in _TEXT_SHAPES)
        if method != "drop" and not is_text:
            raise WrongAnonymising(text, f"{entry.name} is no text: only drop fits")
        if entry.name in found:
            raise WrongAnonymising(text, f"{entry.name} is there twice")
        found[entry.name] = entry
    for entry in found.values():
        if entry.column == "decoded_value" and "value" not in found:
            raise WrongAnonymising(entry.name, "the value says it too: anonymise value as well")
        if entry.column == "decoded_key" and "key" not in found:
            raise WrongAnonymising(entry.name, "the key says it too: anonymise key as well")
    return tuple(found.values())


def _field_type(text: str, kind: ColumnType, fields: list[str]) -> ColumnType:
    """Return the type of a column's nested field; raises WrongAnonymising for an unknown field."""
    for name in fields:
        while isinstance(kind, Shape) and kind.kind is ShapeKind.LIST and kind.item is not None:
            kind = kind.item
        within = dict(kind.fields) if isinstance(kind, Shape) else {}
        if name not in within:
            known = ", ".join(within) or "none"
            raise WrongAnonymising(text, f"no field {name!r}; there are: {known}")
        kind = within[name]
    return kind


def left_columns(
    columns: tuple[ViewColumn, ...], anonymised: Sequence[Anonymised]
) -> tuple[ViewColumn, ...]:
    """Return the columns that are not dropped."""
    dropped = {entry.column for entry in anonymised if entry.method == "drop" and not entry.fields}
    named = {entry.column for entry in anonymised}
    dropped |= {n for n, of in _TELLS.items() if n not in named and dropped & set(of)}
    return tuple(column for column in columns if column.name not in dropped)


def anonymise(
    batch: pa.RecordBatch, anonymised: Sequence[Anonymised], key: bytes | None = None
) -> pa.RecordBatch:
    """Return an Arrow batch whose columns are hashed, with a key if there is one, and masked."""
    import pyarrow as pa

    if not anonymised:
        return batch
    named = {entry.column for entry in anonymised}
    arrays = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        entries = [entry for entry in anonymised if entry.column == field.name]
        if entries:
            values = array.to_pylist()
            for entry in entries:
                values = [_changed(value, entry.fields, entry.method, key) for value in values]
            arrays.append(pa.array(values, field.type))
        elif named & set(_TELLS.get(field.name, ())):
            arrays.append(pa.nulls(len(array), field.type))
        else:
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _changed(value: Any, fields: Sequence[str], method: str, key: bytes | None) -> Any:
    """Anonymise one value, or its field at the path `fields`, in every item of a list.

    Dropped values are None, as are null values. Of headers only the values are changed.
    """
    if value is None:
        return None
    if fields and isinstance(value, list):
        return [_changed(item, fields, method, key) for item in value]
    if fields:
        name, rest = fields[0], fields[1:]
        return {**value, name: _changed(value[name], rest, method, key)}
    if method == DROP:
        return None
    if isinstance(value, list):
        return [{**header, "value": _changed(header["value"], (), method, key)} for header in value]
    if isinstance(value, str):
        return _changed(value.encode(), (), method, key).decode()
    return anonymised_content(value, method, key)
