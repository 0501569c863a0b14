"""Processes of this machine: detached start, readiness, signals, state."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from engine.errors import StorageError
from engine.host.os_errors import storage_error

_LOG_MODE = 0o644
#: Marks in a started process that its descriptor 3 is the ready descriptor. Without the mark that
#: descriptor may be any of its own files.
_READY_VARIABLE = "KCTL_SAYS_READY"
_READY_DESCRIPTOR = 3
_READ_BYTES = 4096
_POLL_INTERVAL_S = 0.01
#: Signals by which a cluster's process reads its requests, and a broker stops with its cluster.
POLL_SIGNAL = signal.SIGUSR1
STOP_WITH_ALL_SIGNAL = signal.SIGUSR2


class Started:
    """A process that was started, with its ready descriptor."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._output = b""

    def poll_ready(self) -> bytes | None:
        """Return the ready message, b"" if the process ended without one, None if neither happened.

        Do not call it again after a result other than None.
        """
        from select import select

        if not select([self._descriptor], [], [], 0)[0]:
            return None
        chunk = os.read(self._descriptor, _READ_BYTES)
        self._output += chunk
        if chunk and not chunk.endswith(b"\n"):
            return None
        os.close(self._descriptor)
        return self._output if chunk else b""

    def wait_until_ready(self, timeout_s: float) -> bytes | None:
        """Return the ready message, b"" if the process ended without one, None after a timeout."""
        from select import select

        line = b""
        try:
            while not line.endswith(b"\n"):
                readable, _, _ = select([self._descriptor], [], [], timeout_s)
                if not readable:
                    return None
                chunk = os.read(self._descriptor, _READ_BYTES)
                if not chunk:
                    return b""
                line += chunk
            return line
        finally:
            os.close(self._descriptor)

    def wait_until_ended(self, timeout_s: float) -> bool:
        """Wait until the process has ended; return False after the timeout."""
        from select import select

        for _ in range(round(timeout_s / _POLL_INTERVAL_S)):
            if not is_running(self.pid):
                return True
            select([], [], [], _POLL_INTERVAL_S)
        return not is_running(self.pid)


def start_detached(arguments: Sequence[str], log_path: str) -> Started:
    """Start a process in a session of its own, with its output appended to a file.

    The process may call `report_ready`. Raises StorageError if the file cannot be opened.
    """
    ready, ready_for_child = os.pipe()
    try:
        log = open_log(log_path)
    except StorageError:
        os.close(ready)
        os.close(ready_for_child)
        raise
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    # The pipe was opened first, so neither other file has the number of the ready descriptor.
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
            # Signals that this process blocks for a moment are not blocked in the child.
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


def open_log(path: str) -> int:
    """Open a file for a process's output; return a descriptor that appends. Raises StorageError."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _LOG_MODE)
    except OSError as error:
        raise storage_error(error.errno or 0, path, "open") from error


def become_detached(log: int, ready: int) -> None:
    """Give a forked process the properties of one that `start_detached` starts.

    The descriptors `log` and `ready` are moved to their numbers, and closed here.
    """
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for descriptor, number in ((nothing, 0), (log, 1), (log, 2), (ready, _READY_DESCRIPTOR)):
        os.dup2(descriptor, number)
    for descriptor in {nothing, log, ready} - {_READY_DESCRIPTOR}:
        os.close(descriptor)
    os.environ[_READY_VARIABLE] = "1"


def leave_ready() -> None:
    """Close the ready descriptor, if there is one, without sending the ready message."""
    if os.environ.pop(_READY_VARIABLE, None) is not None:
        os.close(_READY_DESCRIPTOR)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a Python module with arguments.

    With -P, modules are not searched in the working directory: a folder there that is named
    like this package is not run.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def start_in_session(module: str) -> int:
    """Start a Python module without standard streams; returns its pid.

    It receives signals of this terminal like this process. Raises StorageError.
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


def report_ready(text: str) -> None:
    """Send the ready message to the process that started this one.

    Does nothing if that process does not wait for the message.
    """
    if os.environ.pop(_READY_VARIABLE, None) is None:
        return
    try:
        os.write(_READY_DESCRIPTOR, text.encode() + b"\n")
        os.close(_READY_DESCRIPTOR)
    except OSError:
        return


def is_running(pid: int) -> bool:
    """Return True if a process exists and has not ended.

    A zombie has ended; one of another process's child stays for ever if process 1 reaps none, as in
    many containers. But a killed process is a zombie as soon as its first thread has ended: until
    the last thread has, it holds its files and their locks, and counts as running.
    """
    if _reap_child(pid):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if _read_proc_state(pid) not in (b"Z", b"X") or _has_threads(pid):
        return True
    # A child that has ended since it was waited for leaves no zombie either.
    _reap_child(pid)
    return False


def _reap_child(pid: int) -> bool:
    """Reap a child process if it has ended; return True if it was one that had ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def terminate(pid: int) -> bool:
    """Send SIGTERM; returns True if the process exists."""
    return _send_signal(pid, signal.SIGTERM)


def request_poll(pid: int) -> bool:
    """Signal a cluster's process to read its requests; return True if the process exists."""
    return _send_signal(pid, POLL_SIGNAL)


def stop_with_all(pid: int) -> bool:
    """Signal a broker's process to stop with its cluster, and resume it if it is paused.

    Returns True if the process exists.
    """
    return _send_signal(pid, STOP_WITH_ALL_SIGNAL) and resume(pid)


def pause(pid: int) -> bool:
    """Send SIGSTOP; returns True if the process exists."""
    return _send_signal(pid, signal.SIGSTOP)


def resume(pid: int) -> bool:
    """Send SIGCONT; returns True if the process exists."""
    return _send_signal(pid, signal.SIGCONT)


def is_paused(pid: int) -> bool:
    """Return True if a process exists and is stopped by SIGSTOP."""
    return (_read_proc_state(pid) or _read_ps_state(pid))[:1] in (b"T", b"t")


def _has_threads(pid: int) -> bool:
    """Return True if a zombie still has threads other than its first."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def _read_proc_state(pid: int) -> bytes:
    """Return the letter of a process's state, as in `ps`; empty on systems without /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may contain any bytes.
            return file.read().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _read_ps_state(pid: int) -> bytes:
    """Return a process's state by the command `ps`, on systems without /proc; empty if unknown."""
    from subprocess import run

    try:
        return run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False
        ).stdout.strip()
    except OSError:
        return b""


def kill(pid: int) -> bool:
    """Send SIGKILL; returns True if the process exists."""
    return _send_signal(pid, signal.SIGKILL)


def _send_signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; return False if the process is gone or belongs to another user."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
