"""Rows and words come in the order in which they were printed, also in one pipe."""

from __future__ import annotations

import io
import sys

import pytest

import kctl.__main__ as program
from engine.errors import EngineError
from kctl.console import NotConfirmed, confirm, notify


class _Gone(io.StringIO):
    """A stream whose reader is gone. Its own close flushes nothing, so its end raises nothing."""

    def flush(self) -> None:
        raise BrokenPipeError


def one_pipe(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Return one pipe for both streams: rows are buffered, words are not."""
    shared = io.BytesIO()
    rows = io.TextIOWrapper(io.BufferedWriter(shared), write_through=False)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdout", rows)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(shared, write_through=True))
    return shared


def test_what_is_said_comes_behind_the_rows_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = one_pipe(monkeypatch)
    sys.stdout.write("row\n")
    notify("note")
    assert b"row\nnote\n" == pipe.getvalue()


def test_a_question_comes_behind_the_rows_that_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = one_pipe(monkeypatch)
    answers = io.StringIO("no\n")
    monkeypatch.setattr(answers, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", answers)
    sys.stdout.write("row\n")
    with pytest.raises(NotConfirmed):
        confirm("Delete it", yes=False)
    assert b"row\nDelete it? [y/N] " == pipe.getvalue()


def test_the_error_that_ends_a_command_comes_behind_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = one_pipe(monkeypatch)

    def dispatch(_args: list[str]) -> int:
        sys.stdout.write("row\n")
        raise EngineError("it failed")

    monkeypatch.setattr(program, "_dispatch", dispatch)
    assert 1 == program.main([])
    assert b"row\nerror: it failed\n" == pipe.getvalue()


def test_a_reader_that_is_gone_stops_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = one_pipe(monkeypatch)
    monkeypatch.setattr(sys, "stdout", _Gone())
    notify("note")
    assert b"note\n" == pipe.getvalue()
