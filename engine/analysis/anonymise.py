"""Columns of an export that say nothing of people: hashed, masked or left out.

| how | text, key, value; value of each header | numbers and others |
|---|---|---|
| hash | SHA-256 in hex: the same for the same, so that joins and counts hold | refused |
| mask | `***` | refused |
| drop | the column is left out | the same |

Null stays null. Where values are hashed or masked, `value_hash`, which could be tried out, is null.
A hash hides nothing that can be guessed: everybody can hash all telephone numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.analysis.columns import RECORDS, chosen
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa

_WAYS = ("hash", "drop", "mask")
_TEXTS = ("binary", "string", "headers")
_MASK = b"***"
#: A column that says something of another one.
_TELLS = {"value_hash": "value"}


class WrongAnonymising(EngineError):
    """What to anonymise was not understood, or cannot be done with such a column."""

    exit_code = 2

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(f"--anonymise {text}: {rule}")
        self.text = text


class Anonymised(NamedTuple):
    """A column of the view `records`, and how it is anonymised."""

    column: str
    way: str


def anonymised_columns(texts: Sequence[str]) -> tuple[Anonymised, ...]:
    """Return what texts such as `key=hash` say; raises WrongAnonymising, UnknownColumn."""
    found: dict[str, Anonymised] = {}
    for text in texts:
        name, _, way = text.partition("=")
        if way not in _WAYS:
            raise WrongAnonymising(text, f"expected COLUMN= and one of {', '.join(_WAYS)}")
        (column,) = chosen(RECORDS, [name.strip()])
        if way != "drop" and column.type not in _TEXTS:
            raise WrongAnonymising(text, f"{column.name} is no text: only drop fits")
        if column.name in found:
            raise WrongAnonymising(text, f"{column.name} is there twice")
        found[column.name] = Anonymised(column.name, way)
    return tuple(found.values())


def left_columns(
    columns: tuple[ViewColumn, ...], anonymised: Sequence[Anonymised]
) -> tuple[ViewColumn, ...]:
    """Return the columns that are not dropped."""
    dropped = {entry.column for entry in anonymised if entry.way == "drop"}
    if not dropped:
        return columns
    dropped |= {name for name, source in _TELLS.items() if source in dropped}
    return tuple(column for column in columns if column.name not in dropped)


def anonymise(batch: pa.RecordBatch, anonymised: Sequence[Anonymised]) -> pa.RecordBatch:
    """Return an Arrow batch whose columns are hashed and masked."""
    import pyarrow as pa

    ways = {entry.column: entry.way for entry in anonymised if entry.way != "drop"}
    if not ways:
        return batch
    arrays = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if field.name in ways:
            changed = [_changed(value, ways[field.name]) for value in array.to_pylist()]
            arrays.append(pa.array(changed, field.type))
        elif _TELLS.get(field.name) in ways:
            arrays.append(pa.nulls(len(array), field.type))
        else:
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _changed(value: Any, way: str) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [{**header, "value": _changed(header["value"], way)} for header in value]
    if isinstance(value, str):
        return _changed(value.encode(), way).decode()
    return _MASK if way == "mask" else hashlib.sha256(value).hexdigest().encode()
