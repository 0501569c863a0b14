"""What a column of a view is."""

from __future__ import annotations

from typing import NamedTuple


class ViewColumn(NamedTuple):
    """One column of a view: name, type, whether it may be null, what it is."""

    name: str
    type: str
    nullable: bool
    doc: str
