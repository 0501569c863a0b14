"""What is left of a query without its quoted texts, quoted names and comments."""

from __future__ import annotations

import pytest

from engine.analysis.sql_text import without_texts


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("select 1", "select 1"),
        ("select 'a b' from t", "select   from t"),
        ('select "a" , `b` from t', "select   ,   from t"),
        ("select 1 -- why\nfrom t", "select 1  \nfrom t"),
        ("select 1 -- the end", "select 1  "),
        ("a /* b */ c", "a   c"),
        ("a /* b /* c */ d */ e", "a   e"),
        ("a /* b /* c */ d", "a  "),
        ("a 'not closed", "a  "),
    ],
)
def test_texts_and_comments_are_blanks(query: str, left: str) -> None:
    assert left == without_texts(query)
