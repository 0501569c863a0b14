"""`spark-shell`: statements of lines, completion, what fails and what follows."""

from __future__ import annotations

import io
import json

import pytest

from engine.analysis.columns import VIEWS
from engine.analysis.sql_text import statement_end
from engine.errors import EngineError
from kctl.__main__ import main
from kctl.commands.spark_shell.session import ShellSession, completions_at
from kctl.commands.spark_shell.terminal import history_path
from tests.golden_cases import case_dir

LOGS = str(case_dir("plain") / "data")


def _statements(*lines: str) -> tuple[list[str], ShellSession]:
    found: list[str] = []
    session = ShellSession(found.append, lambda error: None, lambda text: None)
    for line in lines:
        session.process_line(line)
    return found, session


def test_a_statement_ends_with_a_semicolon_on_any_line() -> None:
    found, session = _statements("select 1", "from records;select 2; select", "3")
    assert ["select 1\nfrom records", "select 2"] == found
    assert session.is_within
    session.close()
    assert "select\n3" == found[-1]


@pytest.mark.parametrize(
    ("text", "end"),
    [("select ';' ;", 11), ("select 1 -- ;", None), ("/* ; */ a;", 9), ("select 'a", None)],
)
def test_semicolons_in_texts_and_comments_end_nothing(text: str, end: int | None) -> None:
    assert end == statement_end(text)


def test_exit_ends_unless_a_statement_has_begun() -> None:
    found, session = _statements("select")
    assert session.process_line("exit")
    session.forget()
    assert not session.process_line("exit;")
    assert [] == found


def test_a_statement_that_fails_does_not_end_the_session() -> None:
    failures: list[EngineError] = []
    answered: list[str] = []

    def answer(statement: str) -> None:
        if statement == "bad":
            raise EngineError("no")
        answered.append(statement)

    session = ShellSession(answer, failures.append, lambda text: None)
    session.process_line("bad; good; ;")
    assert (["good"], 1, 1) == (answered, len(failures), session.failure_count)


@pytest.mark.parametrize(
    ("line", "begin", "expected"),
    [
        ("select * from rec", 14, ["records"]),
        ("describe seg", 9, ["segments"]),
        ("select value_h", 7, ["value_hash"]),
        ("select records.key_", 7, ["records.key_size"]),
        ("SEL", 0, ["select"]),
        ("select nosuch.", 7, []),
    ],
)
def test_words_are_completed_where_they_stand(line: str, begin: int, expected: list[str]) -> None:
    assert expected == completions_at(line, begin, VIEWS)


def test_the_history_is_kept_where_states_of_programs_are() -> None:
    assert "/s/kctl/spark_shell_history" == history_path({"XDG_STATE_HOME": "/s"})
    assert "/h/.local/state/kctl/spark_shell_history" == history_path({"HOME": "/h"})


def test_statements_come_from_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "select count(*) n\nfrom records;\nselect nonsense from records;\nselect 1 n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code = main(["spark-shell", LOGS, "-o", "ndjson"])
    said = capsys.readouterr()
    assert 1 == code
    assert [{"n": 1186}, {"n": 1}] == [json.loads(line) for line in said.out.splitlines()]
    assert 2 == len(said.err.splitlines()), said.err
    assert "no column nonsense" in said.err
