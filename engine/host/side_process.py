"""A child process of the same interpreter that responds to messages, and ends with its owner.

```
owner                                       side
request(message) 8 bytes of length │ body ──> its standard input
                 its standard output      ──> the response, in the same form
close, or dies        end of the input    ──> it ends, after the current request
```

One request at a time, with one response each. The files that a side process writes belong to the
owner: once the owner has ended the side must not change them, as the next process owns them
(`FilesOfOwner`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from engine.errors import StorageError
from engine.host.ports import File, SideProcessGone
from engine.host.processes import python_command
from engine.host.real import RealFiles
from engine.limits import SIDE_PRIORITY

_LENGTH_BYTES = 8
_READ_BYTES_MAX = 1 << 20
_EXIT_ALONE = 3


def _create_pipes(program: str) -> tuple[int, int, int, int]:
    """Return the ends of two pipes: read and write end of the first, then of the second.

    Python's descriptors are not inherited, so closing this process's end ends the pipe. Raises
    StorageError.
    """
    ends: tuple[int, ...] = ()
    try:
        ends = os.pipe()
        read_end, write_end = os.pipe()
    except OSError as error:
        for descriptor in ends:
            os.close(descriptor)
        raise StorageError(f"cannot start {program}: {error.strerror}") from error
    return ends[0], ends[1], read_end, write_end


class PipedProcess:
    """The owner's side of a side process; for one thread at a time."""

    def __init__(self, module: str) -> None:
        """Start a Python module that calls `serve_owner`. Raises StorageError."""
        command = python_command(module, str(os.getpid()))
        requested, requests, responses, response = _create_pipes(command[0])
        try:
            self.pid = os.posix_spawn(
                command[0],
                command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, requested, 0),
                    (os.POSIX_SPAWN_DUP2, response, 1),
                ],
            )
        except OSError as error:
            os.close(requests)
            os.close(responses)
            raise StorageError(f"cannot start {command[0]}: {error.strerror}") from error
        finally:
            os.close(requested)
            os.close(response)
        self._requests, self._responses = requests, responses

    def request(self, message: bytes) -> bytes:
        """Send a message and wait for the response. Raises SideProcessGone."""
        try:
            _write(self._requests, message)
            response = _read(self._responses)
        except OSError as error:
            raise SideProcessGone(self.pid) from error
        if response is None:
            raise SideProcessGone(self.pid)
        return response

    def close(self) -> None:
        """End the process after the work in progress, and wait for its end. May be called twice."""
        if self._requests < 0:
            return
        os.close(self._requests)
        os.close(self._responses)
        self._requests = -1
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class FilesOfOwner(RealFiles):
    """The files of this machine; a change ends this process if its owner has ended."""

    def __init__(self, owner_pid: int) -> None:
        self._owner_pid = owner_pid

    def _end_alone(self) -> None:
        """Exit this process if its owner has ended; called before each change of files."""
        if os.getppid() != self._owner_pid:
            # No clean-up: the files may belong to the next owner.
            os._exit(_EXIT_ALONE)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file; see `Files`.

        Opening for writing ends this process if its owner has ended.
        """
        if write:
            self._end_alone()
        return super().open(path, write=write, create=create)

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory; end this process instead if its owner has ended."""
        self._end_alone()
        super().remove(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time (ms); end this process instead if its owner has ended."""
        self._end_alone()
        super().set_modified_ms(path, modified_ms)


def serve_owner(answer_to: Callable[[bytes], bytes]) -> None:
    """Respond to the messages of the process that owns this one, until it closes the pipe.

    `answer_to` returns the response to a message. Ends also if the owner has ended.
    """
    # Ctrl-C at the terminal reaches the owner too, which ends this process properly.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(SIDE_PRIORITY)
    responses = os.dup(1)
    # Accidental output to stdout must not be taken for a response.
    os.dup2(2, 1)
    with suppress(BrokenPipeError):
        while (message := _read(0)) is not None:
            _write(responses, answer_to(message))


def owner_pid() -> int:
    """Return the pid of the process that started this side process, from its first argument."""
    return int(sys.argv[1])


def _write(descriptor: int, message: bytes) -> None:
    """Write a message after its length, in as many writes as the pipe needs."""
    left = memoryview(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
    while left:
        left = left[os.write(descriptor, left) :]


def _read(descriptor: int) -> bytes | None:
    """Return the next message from a pipe, None at the end of the input."""
    head = _read_exactly(descriptor, _LENGTH_BYTES)
    return None if head is None else _read_exactly(descriptor, int.from_bytes(head, "big"))


def _read_exactly(descriptor: int, length: int) -> bytes | None:
    """Return `length` bytes from a pipe, None if it ends before."""
    content = bytearray()
    while len(content) < length:
        part = os.read(descriptor, min(length - len(content), _READ_BYTES_MAX))
        if not part:
            return None
        content += part
    return bytes(content)
