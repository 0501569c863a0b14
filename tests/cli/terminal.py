"""A command on a real terminal, for tests of what is drawn there."""

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

from tests.cli.shell import KCTL, Shell

DEADLINE_S = 60.0


class Terminal:
    """A terminal with a command in it; what it was sent is kept."""

    def __init__(self, shell: Shell, *words: str, columns: int = 80) -> None:
        self._ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
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
        until_s = time.monotonic() + DEADLINE_S
        new = b""
        while text not in (new if text.startswith(b"\x1b") else plain(new)):
            left_s = until_s - time.monotonic()
            assert left_s > 0, (text, new)
            if select.select([self._ours], [], [], left_s)[0]:
                try:
                    new += os.read(self._ours, 65536)
                except OSError:
                    break
        self.shown += new
        return plain(new)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


def plain(raw: bytes) -> bytes:
    """Return what a terminal was sent without its escapes."""
    return re.sub(rb"\x1b\[[0-9;?>=]*\$?[a-zA-Z]", b"", raw)
