"""What is left of a query without its quoted texts, quoted names and comments."""

from __future__ import annotations

import pytest

from engine.analysis.sql_text import (
    escape_doubled_quotes,
    one_statement,
    text_start,
    without_comments,
    without_texts,
)


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


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("select 1;", "select 1"),
        (" select 1 ;; \n", "select 1"),
        ("select 1; -- the end", "select 1"),
        ("select ';' -- ;\n", "select ';' -- ;"),
        ("select 1; select 2", "select 1; select 2"),
    ],
)
def test_a_statement_has_no_semicolon(text: str, statement: str) -> None:
    assert statement == one_statement(text)


@pytest.mark.parametrize(
    ("query", "escaped"),
    [
        ("select 'it''s', ''", r"select 'it\'s', ''"),
        ('select "a""b"', r'select "a\"b"'),
        ("select 'a' 'b' -- it''s", "select 'a' 'b' -- it''s"),
        ("select r'a''b'", "select r'a''b'"),
    ],
)
def test_quotes_in_a_text_have_a_backslash(query: str, escaped: str) -> None:
    assert escaped == escape_doubled_quotes(query)


def test_comments_alone_can_be_left_out() -> None:
    assert "  show 'a -- b'  " == without_comments("/* c */ show 'a -- b' -- d")
    assert "show" == (text := "-- a\n /* b */ -- c\nshow")[text_start(text) :]
    assert 2 == text_start("  'a'")
