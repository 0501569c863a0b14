"""Anonymised columns of an export: hashed, masked or dropped.

| method | text, key, value; value of each header | numbers and other types |
|---|---|---|
| hash | SHA-256 in hex, or HMAC-SHA-256 with a key; equal values get equal hashes | refused |
| mask | `***` | refused |
| drop | the column is left out; a field of `decoded_key`, `decoded_value` is null | the same |

`decoded_value.user.name` names a field; if a list is on the path, the field of each element. The
column `value` contains the same content, so it must be anonymised too. Null stays null. The columns
that are computed from an anonymised column are null: `value_hash`, `decoded_value`,
`decoding_problem`. A hash without a key does not protect values that can be guessed: anybody can
hash all telephone numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from engine.analysis.columns import RECORDS, choose_columns
from engine.analysis.view_column import ColumnType, ViewColumn
from engine.errors import EngineError
from engine.records.anonymising import DROP, METHODS, anonymise_content
from engine.schemas.shape import Shape, ShapeKind

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = ("binary", "string", "headers")
_TEXT_SHAPES = (ShapeKind.TEXT, ShapeKind.JSON)
#: Columns that are computed from other columns, and so reveal their content.
_COMPUTED_FROM = {
    "value_hash": ("value",),
    "decoded_key": ("key",),
    "decoded_value": ("value",),
    "decoding_problem": ("key", "value", "decoded_key", "decoded_value"),
}


class WrongAnonymising(EngineError):
    """The text of `--anonymise` is malformed, or its method does not fit the column's type."""

    exit_code = 2

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(f"--anonymise {text}: {rule}")
        self.text = text


class Anonymised(NamedTuple):
    """A column of the view `records`, or a field in it (`fields` is its path), with the method."""

    column: str
    method: str
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the column's name and the field names of the path, joined by dots."""
        return ".".join((self.column, *self.fields))


def parse_anonymised_columns(
    texts: Sequence[str], columns: tuple[ViewColumn, ...] = RECORDS
) -> tuple[Anonymised, ...]:
    """Parse texts such as `key=hash` or `headers.value=drop` into columns and methods.

    Raises WrongAnonymising for a malformed text, or a copy of the data that is left out;
    UnknownColumn for a column that `columns` lacks.
    """
    found: dict[str, Anonymised] = {}
    for text in texts:
        path, _, method = text.partition("=")
        if method not in METHODS:
            raise WrongAnonymising(text, f"expected COLUMN= and one of {', '.join(METHODS)}")
        name, *fields = path.strip().split(".")
        (column,) = choose_columns(columns, [name])
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
            raise WrongAnonymising(entry.name, "the value holds it too: anonymise value as well")
        if entry.column == "decoded_key" and "key" not in found:
            raise WrongAnonymising(entry.name, "the key holds it too: anonymise key as well")
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
    """Return the columns that an export still has after the method `drop`.

    A column that is computed from a dropped column alone is removed too, unless it has its own
    method.
    """
    dropped = {entry.column for entry in anonymised if entry.method == "drop" and not entry.fields}
    named = {entry.column for entry in anonymised}
    dropped |= {n for n, of in _COMPUTED_FROM.items() if n not in named and dropped & set(of)}
    return tuple(column for column in columns if column.name not in dropped)


def anonymise(
    batch: pa.RecordBatch, anonymised: Sequence[Anonymised], key: bytes | None = None
) -> pa.RecordBatch:
    """Return an Arrow batch with the chosen columns hashed, masked or dropped.

    Hashes use `key` if it is given. Columns that are computed from a changed column become null.
    """
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
                values = [
                    _anonymise_value(value, entry.fields, entry.method, key) for value in values
                ]
            arrays.append(pa.array(values, field.type))
        elif named & set(_COMPUTED_FROM.get(field.name, ())):
            arrays.append(pa.nulls(len(array), field.type))
        else:
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _anonymise_value(value: Any, fields: Sequence[str], method: str, key: bytes | None) -> object:
    """Return one value anonymised, or with its field at the path `fields` anonymised.

    A list on the path is changed item by item. Null and dropped values become None. In headers only
    the values are changed, not the keys.
    """
    if value is None:
        return None
    if fields and isinstance(value, list):
        return [_anonymise_value(item, fields, method, key) for item in value]
    if fields:
        name, rest = fields[0], fields[1:]
        return {**value, name: _anonymise_value(value[name], rest, method, key)}
    if method == DROP:
        return None
    if isinstance(value, list):
        return [
            {**header, "value": _anonymise_value(header["value"], (), method, key)}
            for header in value
        ]
    if isinstance(value, str):
        return cast("bytes", _anonymise_value(value.encode(), (), method, key)).decode()
    return anonymise_content(value, method, key)
