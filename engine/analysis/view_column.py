"""ViewColumn: the definition of one column of a view."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from engine.schemas.shape import Shape

#: A word that `column_types.py` translates, or the shape of values that schemas decode.
ColumnType: TypeAlias = str | Shape


class ViewColumn(NamedTuple):
    """One column of a view: name, type, whether it may be null, documentation."""

    name: str
    type: ColumnType
    nullable: bool
    doc: str
