"""A process that has loaded its modules, and forks others that begin with them.

```
start    fork ── the server waits for requests on a socket, and has nothing else open
spawn    arguments, the log's and the ready pipe's descriptors ──> fork ── main(arguments) ── exit
         <── the pid
end      the socket closes with the process that started the server: the server ends
```

Python takes ten times as long to load a broker's modules as to fork a process that has them. The
server must be started before the process has a loop, a thread, a lock or a store: a forked process
has copies of them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from engine.errors import StorageError
from engine.host.processes import Started, become_detached, leave_ready, open_log

_MESSAGE_BYTES = 65_536
#: The descriptor of the connection in a program that is launched as a server.
_CONNECTION = 3
_FAILED = 1


class ForkServerGone(StorageError):
    """The fork server has ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid}, which forks others, is gone")
        self.pid = pid


class ForkServer:
    """The server seen from the process that started it."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        #: The parent pid of all processes that it forks.
        self.pid = pid
        self._connection = connection

    def spawn(self, arguments: Sequence[str], log_path: str) -> Started:
        """Fork a detached process with the properties that `processes.start_detached` gives.

        `arguments` are passed to the `main` of the server. Returns the process id and the pipe on
        which the process reports that it is ready. Errors: ForkServerGone; StorageError if the log
        cannot be opened.
        """
        log = open_log(log_path)
        ready, ready_for_child = os.pipe()
        try:
            request = json.dumps(list(arguments)).encode() + b"\n"
            socket.send_fds(self._connection, [request], [log, ready_for_child])
            answer = self._connection.recv(_MESSAGE_BYTES)
            if not answer:
                raise ForkServerGone(self.pid)
        except OSError as error:
            os.close(ready)
            raise ForkServerGone(self.pid) from error
        except ForkServerGone:
            os.close(ready)
            raise
        finally:
            os.close(log)
            os.close(ready_for_child)
        return Started(int(answer), ready)

    def close(self) -> None:
        """End the server; the processes that it has forked continue."""
        # A fork of this process has a copy of the connection, so that closing it is not enough.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            return


def start_fork_server(main: Callable[[Sequence[str]], int]) -> ForkServer:
    """Fork a server whose processes run `main` with the arguments of `spawn`.

    They exit with the value that `main` returns.
    """
    ours, of_server = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        # Otherwise a process that waits for this one to become ready would wait for the server,
        # too.
        leave_ready()
        _serve_and_exit(of_server, main)
    of_server.close()
    return ForkServer(pid, ours)


def launch_fork_server(command: Sequence[str]) -> ForkServer:
    """Start a program that calls `serve_forks`; return its server. Raises StorageError."""
    ours, of_server = socket.socketpair()
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, of_server.fileno(), _CONNECTION)]
    actions += [(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)]
    try:
        # A session of its own: Ctrl-C at the terminal does not end it.
        pid = os.posix_spawn(
            command[0], list(command), os.environ, file_actions=actions, setsid=True
        )
    except OSError as error:
        ours.close()
        raise StorageError(f"cannot start {command[0]}: {error.strerror}") from error
    finally:
        os.close(nothing)
        of_server.close()
    return ForkServer(pid, ours)


def serve_forks(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Serve the process that called `launch_fork_server`, until it ends."""
    _serve_and_exit(socket.socket(fileno=_CONNECTION), main)


def _serve_and_exit(connection: socket.socket, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Serve requests to fork until the connection ends, then exit this process.

    Nothing of the parent's Python state is finalized: `os._exit`.
    """
    code = _FAILED
    try:
        # Nothing waits for the forked processes: they must not become zombies.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        code = _serve_requests(connection, main)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _serve_requests(connection: socket.socket, main: Callable[[Sequence[str]], int]) -> int:
    """Fork a process for each request; a forked process returns from here with its exit code."""
    while True:
        request, descriptors = b"", list[int]()
        while not request.endswith(b"\n"):
            part, more, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 2)
            if not part:
                return 0
            request += part
            descriptors += more
        log, ready = descriptors
        pid = os.fork()
        if not pid:
            connection.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become_detached(log, ready)
            return main(json.loads(request))
        os.close(log)
        os.close(ready)
        connection.sendall(b"%d" % pid)
