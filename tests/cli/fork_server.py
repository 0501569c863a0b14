"""kctl without its start: a process that has imported it forks one for each command.

```
test ── connection: words, environment, folder; stdin, stdout, stderr as descriptors ──> server
server ── fork ──> child: becomes the command ── exit code ──> test
command ── arguments of a cluster's process; also the ready descriptor ──> server
server ── fork ──> child: becomes the cluster's process ── pid ──> command
```

Half of what a command of the tests costs is Python's start and imports, and of a cluster's process
nearly all. A child differs from a process of its own in that alone: tests of starts, imports,
signals and streams begin processes, and so do the tests with other people's clients.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from engine.host import processes
from engine.host.processes import Started, python_command

ROOT = Path(__file__).parent.parent.parent
#: Nouns with processes that begin as their parent did, or that are measured in memory.
NOT_FORKED = frozenset(("sim", "spark-export", "spark-sql", "spark-shell", "broker"))
_MESSAGE_BYTES_MAX = 1 << 22
_PIDS: dict[int, ForkServer] = {}
_CLUSTER = "engine.cluster"
#: Beyond those that the standard streams and the ready descriptor have.
_FIRST_FREE_DESCRIPTOR = 10


class ForkServer:
    """A server of this process, which ends with it."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="forks-")
        self.path = os.path.join(self._folder, "socket")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, self.path],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.read(1) == b"+"
        atexit.register(self.close)

    @classmethod
    def of_this_process(cls) -> ForkServer:
        """Return the server of this process, started when it is asked for first."""
        if os.getpid() not in _PIDS:
            _PIDS[os.getpid()] = cls()
        return _PIDS[os.getpid()]

    def run(
        self, words: list[str], environment: dict[str, str], stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        """Run a command; returns its exit code, stdout and stderr."""
        with contextlib.ExitStack() as files:
            connection = files.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(self.path)
            ends = [os.pipe() for _ in range(3)]
            child_ends = [ends[0][0], ends[1][1], ends[2][1]]
            _send(connection, words, environment, child_ends)
            for end in child_ends:
                os.close(end)
            said: dict[int, bytes] = {}
            readers = [
                threading.Thread(target=_read, args=(ends[number][0], number, said))
                for number in (1, 2)
            ]
            for reader in readers:
                reader.start()
            _write(ends[0][1], stdin)
            for reader in readers:
                reader.join()
            code = connection.recv(4)
        return int.from_bytes(code, "big", signed=True) if code else -9, said[1], said[2]

    def close(self) -> None:
        """End the server."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
            os.rmdir(self._folder)


def _read(descriptor: int, number: int, said: dict[int, bytes]) -> None:
    with open(descriptor, "rb") as stream:
        said[number] = stream.read()


def _write(descriptor: int, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb") as stream:
        stream.write(content)


def _send(
    connection: socket.socket, words: Sequence[str], environment: dict[str, str], ends: list[int]
) -> None:
    message = json.dumps([list(words), environment, os.getcwd()]).encode()
    socket.send_fds(connection, [len(message).to_bytes(4, "big")], ends)
    connection.sendall(message)


def serve(path: str) -> None:
    """Fork a command for each connection, until this process is killed or its parent is gone."""
    for module in pkgutil.walk_packages([str(ROOT / "kctl")], "kctl."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    import_module("kctl.__main__")
    import_module("engine.client.blocking")
    import_module("engine.cluster.run")
    import_module("typer.main")
    import_module("tabulate")
    import_module("yaml")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    gc.freeze()
    os.write(1, b"+")
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _become(connection, path)
        connection.close()


def _become(connection: socket.socket, path: str) -> None:
    """Be what a connection asks for, to its end: a command, or a process of a cluster."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, given, _, _ = socket.recv_fds(connection, 4, 4)
    left, message = int.from_bytes(size, "big"), b""
    assert left < _MESSAGE_BYTES_MAX
    while len(message) < left:
        message += connection.recv(left - len(message))
    words, environment, folder = json.loads(message)
    is_detached = len(given) == 4
    if is_detached:
        os.setsid()
        pid = os.getpid().to_bytes(4, "big")
        connection.sendall(pid)
        connection.close()
    _take_descriptors(given)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    if is_detached:
        from engine.cluster.__main__ import main

        os._exit(_code_of(lambda: sys.exit(main(*words))))
    start = _starter(path, processes.start_detached)
    processes.start_detached = start  # type: ignore[assignment]
    sys.argv = [str(ROOT / "kctl" / "__main__.py"), *words]
    code = _code_of_entry()
    connection.sendall(code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _take_descriptors(given: list[int]) -> None:
    """Have the given descriptors be 0, 1, 2 and perhaps 3, and no other one that is inherited."""
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_DESCRIPTOR) for each in given]
    for each in given:
        os.close(each)
    for number, descriptor in enumerate(moved):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _starter(
    path: str, start: Callable[[Sequence[str], str], Started]
) -> Callable[[Sequence[str], str], Started]:
    """Return what starts processes of clusters as forks of the server.

    Those of single brokers look after their parent, and are started as ever.
    """

    def start_detached(arguments: Sequence[str], log_path: str) -> Started:
        command = python_command(_CLUSTER)
        if list(arguments[:-1]) != command:
            return start(arguments, log_path)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            ready, ready_for_child = os.pipe()
            nothing = os.open(os.devnull, os.O_RDONLY)
            log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            ends = [nothing, log, log, ready_for_child]
            environment = {**os.environ, processes._READY_VARIABLE: "1"}
            _send(connection, arguments[-1:], environment, ends)
            for end in set(ends):
                os.close(end)
            return Started(int.from_bytes(connection.recv(4), "big"), ready)

    return start_detached


def _code_of_entry() -> int:
    """Run kctl as an interpreter would, and return the exit code."""
    from kctl.__main__ import own_process

    return _code_of(lambda: sys.exit(own_process()))


def _code_of(run: Callable[[], object]) -> int:
    """Run a program to its end as an interpreter would, and return the exit code."""
    code = 0
    try:
        run()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1])
