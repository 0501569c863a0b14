"""Child processes with a message, lines and an end."""

from __future__ import annotations

import sys

import pytest

from engine.errors import StorageError
from engine.host.child_process import ChildProcess

CHILD = """
from engine.host.child_process import ParentProcess
parent = ParentProcess()
parent.send(parent.read_message().upper())
while not parent.wants_an_end:
    pass
parent.send(b"end")
"""


def until(child: ChildProcess, count: int) -> list[bytes]:
    """Return so many lines of a child."""
    lines: list[bytes] = []
    while len(lines) < count and child.exit_code is None:
        lines += child.lines()
    return lines + child.lines()


def test_a_child_has_its_message_sends_lines_and_ends_when_it_is_asked_to() -> None:
    child = ChildProcess([sys.executable, "-c", CHILD], b"hello")
    assert [b"HELLO"] == until(child, 1)
    child.close_input()
    assert [b"end"] == until(child, 1)
    child.close(30)
    assert 0 == child.exit_code


def test_what_a_child_sends_as_it_ends_can_be_read_afterwards() -> None:
    child = ChildProcess([sys.executable, "-c", CHILD], b"hello")
    assert [b"HELLO"] == until(child, 1)
    child.close(30)
    assert [b"end"] == child.lines()
    assert [] == child.lines()


def test_a_child_that_does_not_end_is_killed() -> None:
    endless = "import signal, sys; print('up', flush=True)\nwhile True: signal.pause()"
    child = ChildProcess([sys.executable, "-c", endless], b"")
    assert [b"up"] == until(child, 1)
    child.close(0)
    assert -9 == child.exit_code


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(StorageError, match="cannot start /nowhere/at/all"):
        ChildProcess(["/nowhere/at/all"], b"")


def test_a_child_that_ends_before_its_message_is_no_error() -> None:
    child = ChildProcess([sys.executable, "-c", "raise SystemExit(3)"], b"x" * 10)
    while child.exit_code is None:
        child.lines()
    assert 3 == child.exit_code
    child.close(1)
