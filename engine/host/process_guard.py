"""Restrict an object to the process that made it: a forked child must not use it.

A child has copies of sockets, of the selector and of locks, and none of the threads. Two processes
that read one connection take each other's responses, and a queue of a thread that is not there is
never emptied.
"""

from __future__ import annotations

import os

from engine.errors import EngineError


class UsedAfterFork(EngineError):
    """A forked process used an object that its parent made."""

    hint = "create the client in the child, after the fork, or start the child by spawn"

    def __init__(self, made_by_pid: int, used_by_pid: int) -> None:
        super().__init__(
            f"process {used_by_pid} uses a client that process {made_by_pid} made before a fork"
        )
        self.made_by_pid = made_by_pid
        self.used_by_pid = used_by_pid


class ProcessGuard:
    """Checks that an object is used only in the process that made it."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_in_creating_process(self) -> bool:
        """Return True if this is the process that made the object."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Raise UsedAfterFork in a process other than the creator of the object.

        A forked child would share sockets and files with its parent, and mix up their bytes.
        """
        pid = os.getpid()
        if pid != self._pid:
            raise UsedAfterFork(self._pid, pid)
