"""Other processes of this machine: started so that they outlive this one, asked, told to stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from engine.errors import StorageError
from engine.host.os_errors import storage_error

_LOG_MODE = 0o644
#: Tells a started process that its descriptor 3 is for saying that it is ready. Without it that
#: descriptor may be any file of its own.
_READY_VARIABLE = "KCTL_SAYS_READY"
_READY_DESCRIPTOR = 3
_READ_BYTES = 4096
_LOOK_S = 0.01
#: Asks a cluster's process to look for a request, and a broker's to stop with the whole cluster.
LOOK_SIGNAL = signal.SIGUSR1
STOP_WITH_ALL_SIGNAL = signal.SIGUSR2


class Started:
    """A process that was started, and what it says on its ready descriptor."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._said = b""

    def said(self) -> bytes | None:
        """Return what it says once it is ready, b"" if it ended before, None until then.

        Not to be asked again once there is an answer.
        """
        from select import select

        if not select([self._descriptor], [], [], 0)[0]:
            return None
        chunk = os.read(self._descriptor, _READ_BYTES)
        self._said += chunk
        if chunk and not chunk.endswith(b"\n"):
            return None
        os.close(self._descriptor)
        return self._said if chunk else b""

    def wait_until_ready(self, timeout_s: float) -> bytes | None:
        """Return what it says once it is ready, b"" if it ended before, None after the time."""
        from select import select

        said = b""
        try:
            while not said.endswith(b"\n"):
                readable, _, _ = select([self._descriptor], [], [], timeout_s)
                if not readable:
                    return None
                chunk = os.read(self._descriptor, _READ_BYTES)
                if not chunk:
                    return b""
                said += chunk
            return said
        finally:
            os.close(self._descriptor)

    def wait_until_ended(self, timeout_s: float) -> bool:
        """Wait until the process has ended; returns whether it has by then."""
        from select import select

        for _ in range(round(timeout_s / _LOOK_S)):
            if not is_running(self.pid):
                return True
            select([], [], [], _LOOK_S)
        return not is_running(self.pid)


def start_detached(arguments: Sequence[str], log_path: str) -> Started:
    """Start a process of its own session, its output appended to a file.

    It may call `say_ready`. Raises StorageError if the file cannot be opened.
    """
    ready, ready_for_child = os.pipe()
    try:
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _LOG_MODE)
    except OSError as error:
        os.close(ready)
        os.close(ready_for_child)
        raise storage_error(error.errno or 0, log_path, "open") from error
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    # The pipe came first, so that neither of the others has the ready descriptor's number.
    actions = [
        (os.POSIX_SPAWN_DUP2, ready_for_child, _READY_DESCRIPTOR),
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    try:
        pid = os.posix_spawn(
            arguments[0],
            list(arguments),
            {**os.environ, _READY_VARIABLE: "1"},
            file_actions=actions,
            setsid=True,
            # Whatever this process holds back for a moment.
            setsigmask=(),
        )
    except OSError as error:
        os.close(ready)
        raise StorageError(f"cannot start {arguments[0]}: {error.strerror}") from error
    finally:
        os.close(ready_for_child)
        os.close(nothing)
        os.close(log)
    return Started(pid, ready)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python module with arguments.

    Modules are never looked for in the working directory (-P): what somebody has there, such as
    a folder named like ours, is not run.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def start_beside(module: str) -> int:
    """Start a Python module that says nothing and reads nothing; returns its pid.

    It gets the signals of this terminal as this process does. Raises StorageError.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        return os.posix_spawn(
            sys.executable,
            python_command(module),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)],
        )
    except OSError as error:
        raise StorageError(f"cannot start {sys.executable}: {error.strerror}") from error
    finally:
        os.close(nothing)


def say_ready(text: str) -> None:
    """Tell the parent of this process that it is ready; nothing happens if nobody listens."""
    if os.environ.pop(_READY_VARIABLE, None) is None:
        return
    try:
        os.write(_READY_DESCRIPTOR, text.encode() + b"\n")
        os.close(_READY_DESCRIPTOR)
    except OSError:
        return


def is_running(pid: int) -> bool:
    """Return whether a process is there; one that ended and was not waited for is not."""
    try:
        ended_pid, _ = os.waitpid(pid, os.WNOHANG)
        if ended_pid == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask_to_stop(pid: int) -> bool:
    """Send SIGTERM; returns whether the process was there to get it."""
    return _send(pid, signal.SIGTERM)


def ask_to_look(pid: int) -> bool:
    """Have a cluster's process look for a request; returns whether it was there."""
    return _send(pid, LOOK_SIGNAL)


def ask_to_stop_with_all(pid: int) -> bool:
    """Have a broker's process stop with all others, paused or not; returns whether it was there."""
    return _send(pid, STOP_WITH_ALL_SIGNAL) and resume(pid)


def pause(pid: int) -> bool:
    """Send SIGSTOP; returns whether the process was there to get it."""
    return _send(pid, signal.SIGSTOP)


def resume(pid: int) -> bool:
    """Send SIGCONT; returns whether the process was there to get it."""
    return _send(pid, signal.SIGCONT)


def is_paused(pid: int) -> bool:
    """Return whether a process is there and stands still after SIGSTOP."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may have any bytes.
            state = file.read().rpartition(b")")[2].split()[0]
    except FileNotFoundError:
        state = _state_by_ps(pid)
    return state[:1] in (b"T", b"t")


def _state_by_ps(pid: int) -> bytes:
    """Return a process's state where there is no /proc; empty if nobody knows."""
    from subprocess import run

    try:
        return run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False
        ).stdout.strip()
    except OSError:
        return b""


def kill(pid: int) -> bool:
    """Send SIGKILL; returns whether the process was there to get it."""
    return _send(pid, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
