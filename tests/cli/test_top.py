"""`kctl top` on a real terminal of 80 by 24."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import KCTL, Shell

pytestmark = pytest.mark.slow
_DEADLINE_S = 60.0
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


class Terminal:
    """A terminal with a command in it; what it was sent is kept."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self._ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*KCTL, *words],
            env=shell.environment,
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        )
        os.close(its)
        self.shown = b""

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: bytes) -> bytes:
        """Return all that came until a text did, but for escapes; it counts from here on."""
        until_s = time.monotonic() + _DEADLINE_S
        new = b""
        while text not in (new if text.startswith(b"\x1b") else _plain(new)):
            left_s = until_s - time.monotonic()
            assert left_s > 0, (text, new)
            if select.select([self._ours], [], [], left_s)[0]:
                try:
                    new += os.read(self._ours, 65536)
                except OSError:
                    break
        self.shown += new
        return _plain(new)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


def _plain(raw: bytes) -> bytes:
    return re.sub(rb"\x1b\[[0-9;?>=]*\$?[a-zA-Z]", b"", raw)


def test_the_screen_opens_shows_views_and_leaves_the_terminal_as_it_was(shell: Shell) -> None:
    terminal = Terminal(shell, "top", "--no-groups", "--every", "1s")
    try:
        terminal.wait_for(b"topics: 1")
        assert b"q end" in _plain(terminal.shown)
        terminal.press(b"1")
        terminal.wait_for(b"brokers: 1")
        terminal.press(b"q")
        terminal.wait_for(_END_OF_SCREEN)
        assert 0 == terminal.process.wait(_DEADLINE_S)
        # Plain colours of the terminal alone, and no mouse.
        assert b"38;2;" not in terminal.shown
        assert b"?1000h" not in terminal.shown
    finally:
        terminal.close()


def test_an_address_where_nobody_answers_is_an_error_before_the_screen(shell: Shell) -> None:
    terminal = Terminal(shell, "top", "-b", "127.0.0.1:1", "--timeout", "5")
    try:
        terminal.wait_for(b"error: cannot reach 127.0.0.1:1")
        assert 3 == terminal.process.wait(_DEADLINE_S)
        assert b"?1049h" not in terminal.shown
    finally:
        terminal.close()
