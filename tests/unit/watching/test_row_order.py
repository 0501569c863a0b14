"""Rows that are filtered and sorted."""

from __future__ import annotations

import pytest

from engine.watching.row_order import filter_rows, sort_rows

ROWS = [
    {"name": "Orders", "lag": 3, "verdict": "OK"},
    {"name": "clicks", "lag": None, "verdict": "STALL"},
    {"name": "orders-old", "lag": 10, "verdict": "odd"},
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["Orders", "clicks", "orders-old"]),
        ("ORDERS", ["Orders", "orders-old"]),
        ("orders ok", ["Orders"]),
        ("ok orders", ["Orders"]),
        ("10", ["orders-old"]),
        ("nothing", []),
    ],
)
def test_a_row_matches_that_has_each_word(text: str, names: list[str]) -> None:
    assert names == [row["name"] for row in filter_rows(ROWS, text, ["name", "lag", "verdict"])]


def test_a_field_that_is_not_shown_does_not_match() -> None:
    assert [] == filter_rows(ROWS, "10", ["name"])


@pytest.mark.parametrize(("is_descending", "lags"), [(False, [3, 10, None]), (True, [10, 3, None])])
def test_rows_without_the_field_come_last_either_way(
    is_descending: bool, lags: list[int | None]
) -> None:
    assert lags == [r["lag"] for r in sort_rows(ROWS, "lag", is_descending=is_descending)]


def test_words_may_have_an_order_of_their_own() -> None:
    found = sort_rows(ROWS, "verdict", is_descending=False, rank=("STALL", "OK"))
    assert ["STALL", "OK", "odd"] == [row["verdict"] for row in found]
