"""A child process that receives one line at its start, sends lines, and ends with its parent.

```
parent ── one line ──> standard input of the child ── closed: it is to end
parent <── lines ───── its standard output
```

Ctrl-C at a terminal does not reach it: it has a session of its own, and ends when its standard
input is closed, which it also is when the parent dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from select import select
from typing import Final

from engine.errors import StorageError
from engine.host.deferred_signals import block_signals

_READ_BYTES: Final = 1 << 16


class ChildProcess:
    """A child process of this process; `close` ends it."""

    def __init__(self, arguments: Sequence[str], message: bytes) -> None:
        """Start the process, and send `message` as one line. Raises StorageError."""
        try:
            with block_signals():
                self._process = subprocess.Popen(
                    list(arguments),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
        except OSError as error:
            raise StorageError(f"cannot start {arguments[0]}: {error.strerror}") from error
        #: Bytes of a line whose end the process has not written yet.
        self._unread = b""
        self._send(message)

    @property
    def pid(self) -> int:
        """Return the child's process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Return the child's exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def lines(self) -> list[bytes]:
        """Return the lines that the child wrote since the last call, without waiting.

        After `close`, the lines up to the end of the process.
        """
        self._read_output()
        *whole, self._unread = self._unread.split(b"\n")
        return whole

    def _read_output(self) -> None:
        """Read the available output, without waiting; close the pipe at its end."""
        output = self._process.stdout
        assert output is not None
        while not output.closed and select([output], [], [], 0)[0]:
            chunk = os.read(output.fileno(), _READ_BYTES)
            if not chunk:
                output.close()
            self._unread += chunk

    def close_input(self) -> None:
        """Close the child's standard input, which asks the child to finish its work and end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            # The process has ended without reading all its input.
            return

    def kill(self) -> None:
        """Kill the process, and wait for its end; lines that were not read are dropped."""
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def close(self, wait_s: float) -> None:
        """Ask the process to end, and wait for that; kill it after `wait_s`."""
        self.close_input()
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._read_output()
        self._close_pipes()

    def _close_pipes(self) -> None:
        """Close the pipes to the child's standard input and output."""
        self.close_input()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _send(self, message: bytes) -> None:
        """Send the process one line; do nothing if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # The process ended at once: `exit_code` shows why.
            return


class ParentProcess:
    """A child's link to its parent: the parent's message, and its request to end."""

    def __init__(self) -> None:
        # Unblock signals: the parent blocked them while it started this process.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def read_message(self) -> bytes:
        """Return the line that the process was started with."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(0, 1)
            if not byte:
                break
            line += byte
        return line.rstrip(b"\n")

    @property
    def wants_an_end(self) -> bool:
        """Return True if the parent has closed this process's input, or has ended."""
        return bool(select([0], [], [], 0)[0])

    def send(self, line: bytes) -> None:
        """Send a line to the parent; dropped if the parent no longer reads."""
        try:
            os.write(1, line + b"\n")
        except BrokenPipeError:
            return
