"""Filtering and sorting of the displayed rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from engine.errors import EngineError

R = TypeVar("R", bound=Mapping[str, Any])

_USAGE_EXIT = 2


class NoSuchSort(EngineError):
    """Raised if rows should be sorted by a column that they do not have."""

    exit_code = _USAGE_EXIT

    def __init__(self, key: str, keys: Iterable[str]) -> None:
        super().__init__(f"no column {key!r} to sort by: one of {', '.join(keys)}")
        self.key = key


def filter_rows(rows: Iterable[R], text: str, keys: Iterable[str]) -> list[R]:
    """Return the rows in which each word of a text occurs in one of the fields, ignoring case."""
    terms, shown = text.lower().split(), list(keys)
    return [
        row
        for row in rows
        if all(any(term in str(row[key]).lower() for key in shown) for term in terms)
    ]


def sort_rows(
    rows: Iterable[R], key: str, *, is_descending: bool, rank: Sequence[str] = ()
) -> list[R]:
    """Return rows sorted by a field; rows with None are last, equal ones keep their order.

    Values in `rank` come before others, in its order.
    """
    places = {value: place for place, value in enumerate(rank)}

    def sort_key(row: R) -> tuple[int, Any]:
        """Return the position of a row's value in `rank`, then the value itself."""
        value = row[key]
        if rank and value in places:
            return places[value], ""
        return len(places), value

    known: list[R] = []
    unknown: list[R] = []
    for row in rows:
        (unknown if row[key] is None else known).append(row)
    return [*sorted(known, key=sort_key, reverse=is_descending), *unknown]
