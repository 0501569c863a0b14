"""`kctl top` on a real terminal of 80 by 24."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.terminal import DEADLINE_S, Terminal, plain

pytestmark = pytest.mark.slow
_END_OF_SCREEN = b"\x1b[?1049l"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks", "-p", "2")
    shell.environment |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    shell.environment.pop("NO_COLOR", None)
    yield shell
    shell.ok("cluster", "destroy", "-y")


def test_the_screen_opens_shows_views_and_leaves_the_terminal_as_it_was(shell: Shell) -> None:
    terminal = Terminal(shell, "top", "--no-groups", "--every", "1s")
    try:
        terminal.wait_for(b"topics: 1")
        assert b"q end" in plain(terminal.shown)
        terminal.press(b"1")
        terminal.wait_for(b"brokers: 1")
        terminal.press(b"q")
        terminal.wait_for(_END_OF_SCREEN)
        assert 0 == terminal.process.wait(DEADLINE_S)
        # Plain colours of the terminal alone, and no mouse.
        assert b"38;2;" not in terminal.shown
        assert b"?1000h" not in terminal.shown
    finally:
        terminal.close()


def test_an_address_where_nobody_answers_is_an_error_before_the_screen(shell: Shell) -> None:
    terminal = Terminal(shell, "top", "-b", "127.0.0.1:1", "--timeout", "5")
    try:
        terminal.wait_for(b"error: cannot reach 127.0.0.1:1")
        assert 3 == terminal.process.wait(DEADLINE_S)
        assert b"?1049h" not in terminal.shown
    finally:
        terminal.close()
