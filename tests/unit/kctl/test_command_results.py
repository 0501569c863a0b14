"""What is printed at the end of a command about several things."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from kctl import exits
from kctl.command_results import ItemFailures, end_with
from kctl.render import Column, Row

COLUMNS = (Column("name", "NAME"), Column("size", "SIZE", wide=True))
ROW = {"name": "clicks", "size": 1}


@pytest.mark.parametrize("output", ["table", "wide"])
def test_where_all_failed_there_is_no_heading(
    capsys: pytest.CaptureFixture[str], output: str
) -> None:
    assert exits.FAILED == end_with(COLUMNS, [], output, failures=2)
    assert "" == capsys.readouterr().out


def test_a_heading_alone_says_that_there_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.OK == end_with(COLUMNS, [], "table")
    assert "NAME\n" == capsys.readouterr().out


def test_what_went_well_is_shown_beside_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.FAILED == end_with(COLUMNS, [ROW], "table", failures=1)
    assert "NAME\nclicks\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("output", "empty"), [("json", "[]\n"), ("yaml", "[]\n"), ("csv", "name,size\n"), ("name", "")]
)
def test_programs_read_a_whole_document_though_all_failed(
    capsys: pytest.CaptureFixture[str], output: str, empty: str
) -> None:
    assert exits.FAILED == end_with(COLUMNS, [], output, failures=1)
    assert empty == capsys.readouterr().out


class OutOfReach(EngineError):
    exit_code = exits.UNREACHABLE


@pytest.mark.parametrize(
    ("errors", "rows", "code"),
    [
        ([], [], exits.OK),
        ([OutOfReach("down"), OutOfReach("down")], [], exits.UNREACHABLE),
        ([OutOfReach("down"), EngineError("not there")], [], exits.FAILED),
        ([OutOfReach("down")], [ROW], exits.FAILED),
    ],
)
def test_a_cluster_that_is_down_is_told_from_items_that_fail(
    errors: list[EngineError], rows: list[Row], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = ItemFailures()
    for error in errors:
        failures.report(error, "item")
    assert len(errors) == failures.count
    assert code == failures.end_with(COLUMNS, rows, "table")
    assert len(errors) == capsys.readouterr().err.count("error: item: ")
