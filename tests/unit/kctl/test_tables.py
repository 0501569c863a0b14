"""Tables: aligned as they are shown, safe for a terminal, and as markup."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from kctl.render import Column, RowWriter, write_rows
from kctl.render.rows import STREAMED_ROWS_HELD_MAX
from kctl.render.table import fitted_widths, size_text, write_table
from kctl.render.visible import VisibleStream, visible_cell, visible_lines

COLUMNS = (Column("name", "NAME"), Column("size", "SIZE", right=True), Column("x", "X", wide=True))


def written(output: str, *rows: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    writer = RowWriter(COLUMNS, output, stream)
    for row in rows:
        writer.write(row)
    writer.close()
    return stream.getvalue().splitlines()


def test_wide_characters_count_as_wide_as_they_are_shown() -> None:
    lines = written("table", {"name": "漢字", "size": 1}, {"name": "abcd", "size": 22})
    assert ["NAME  SIZE", "漢字     1", "abcd    22"] == lines


def test_a_table_is_the_same_after_any_other_tables() -> None:
    ascii_rows = ({"name": "abc", "size": 1}, {"name": "", "size": 222})
    before = {output: written(output, *ascii_rows) for output in ("table", "markdown", "html")}
    written("table", {"name": "漢字", "size": 1})
    assert before == {output: written(output, *ascii_rows) for output in before}


def test_a_cell_is_one_line_and_steers_no_terminal() -> None:
    (_, line) = written("table", {"name": "a\x1b[31m\nb\r\t\x9bc\x7f", "size": 1})
    assert "a\\x1b[31m\\nb\\r\\t\\x9bc\\x7f     1" == line


def test_blanks_at_the_front_of_a_cell_stay() -> None:
    assert "  a      1" == written("table", {"name": "  a", "size": 1})[1]


def test_numbers_in_texts_stay_as_they_are() -> None:
    assert "007" == written("table", {"name": "007", "size": None})[1].split()[0]
    assert "1e5" == written("table", {"name": "1e5", "size": None})[1].split()[0]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10 * 1024 - 1, "10.0 KiB"),
        (1536 * 1024, "1.50 MiB"),
        (1024**2 - 1, "1.00 MiB"),
        (250 * 1024**3, "250 GiB"),
        (3 << 70, "3072 EiB"),
        (-2048, "-2.00 KiB"),
    ],
)
def test_sizes_are_read_at_a_glance(size_bytes: int, text: str) -> None:
    assert text == size_text(size_bytes)


def test_sizes_are_for_people_in_tables_alone() -> None:
    columns = (Column("name", "NAME"), Column("size", "SIZE", right=True, is_size=True))
    shown = {}
    for output in ("table", "markdown", "tsv", "csv", "json"):
        stream = io.StringIO()
        write_rows(
            columns, [{"name": "a", "size": 2048}, {"name": "b", "size": None}], output, stream
        )
        shown[output] = "2.00 KiB" in stream.getvalue()
    assert {"table": True, "markdown": True, "tsv": False, "csv": False, "json": False} == shown


def test_markdown_is_what_github_shows() -> None:
    lines = written("markdown", {"name": "a|b", "size": 1})
    assert ["|NAME|SIZE|", "|a\\|b|1|"] == [line.replace(" ", "") for line in lines[::2]]
    assert set(lines[1]) == set("|:-")


def test_html_is_escaped() -> None:
    text = "\n".join(written("html", {"name": "<script>", "size": 1}))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_tsv_has_no_padding() -> None:
    rows = ({"name": "a\tb", "size": 1}, {"name": "c", "size": 10})
    assert ["NAME\tSIZE", "a\\tb\t1", "c\t10"] == written("tsv", *rows)


@pytest.mark.parametrize("output", ["table", "markdown", "html", "tsv"])
def test_no_rows_are_a_heading(output: str) -> None:
    assert "NAME" in "".join(written(output))


def test_bytes_for_a_terminal_keep_lines_and_tabs() -> None:
    assert b"a\n\tb\\x1b[0m\\xff\\x9b" == visible_lines(b"a\n\tb\x1b[0m\xff\xc2\x9b")
    assert "漢 é" == visible_cell("漢 é")


class TestStreamedTables:
    def stream(self) -> tuple[RowWriter, io.StringIO]:
        text = io.StringIO()
        return RowWriter(COLUMNS, "table", text, is_stream=True), text

    def test_rows_are_there_when_they_are_flushed(self) -> None:
        writer, text = self.stream()
        writer.write({"name": "abcdef", "size": 1})
        assert "" == text.getvalue()
        writer.flush()
        assert ["NAME    SIZE", "abcdef     1"] == text.getvalue().splitlines()
        writer.write({"name": "longer than that", "size": 1})
        writer.flush()
        writer.close()
        assert "longer than that     1" == text.getvalue().splitlines()[2]

    def test_no_more_than_a_few_rows_are_held(self) -> None:
        writer, text = self.stream()
        for _ in range(STREAMED_ROWS_HELD_MAX):
            writer.write({"name": "a", "size": 1})
        assert STREAMED_ROWS_HELD_MAX + 1 == len(text.getvalue().splitlines())
        writer.close()
        assert STREAMED_ROWS_HELD_MAX + 1 == len(text.getvalue().splitlines())

    def test_without_rows_the_heading_comes_at_the_end(self) -> None:
        writer, text = self.stream()
        writer.flush()
        writer.close()
        assert ["NAME  SIZE"] == text.getvalue().splitlines()


def test_bytes_that_come_in_pieces_are_made_visible_as_a_whole() -> None:
    shown: list[bytes] = []
    stream = VisibleStream(shown.append)
    for piece in (b"a\xe6", b"\xbc", b"\xa2\x1b\n\x07", b"end\xff"):
        stream.write(memoryview(piece))
    assert ["a漢\\x1b\n"] == [block.decode() for block in shown if block]
    stream.close()
    assert "a漢\\x1b\n\\x07end\\xff" == b"".join(shown).decode()


@pytest.mark.parametrize(
    ("headings", "widest", "available", "expected"),
    [
        (["A", "B"], [5, 9], 40, [5, 9]),
        (["A", "B"], [50, 30], 40, [20, 20]),
        (["PARTITION", "B"], [9, 90], 20, [9, 11]),
        (["PARTITION", "B"], [90, 3], 14, [11, 3]),
        (["DECODED VALUE", "B"], [13, 8], 14, [7, 7]),
        (["PARTITION"] * 4, [9] * 4, 35, None),
        ([], [], 0, []),
    ],
)
def test_columns_are_never_narrower_than_the_words_of_their_headings(
    headings: list[str], widest: list[int], available: int, expected: list[int] | None
) -> None:
    assert expected == fitted_widths(headings, widest, available)


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_no_heading_is_broken_on_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    names = ("TOPIC", "PARTITION", "START-OFFSET", "RESULT")
    shown = tuple(Column(name, name) for name in names)
    write_table(shown, [dict.fromkeys(names, "a-long-value-of-a-cell")], stream)
    text = re.sub("\x1b\\[[0-9;]*m", "", stream.getvalue())
    assert [] == [name for name in names if name not in text]
