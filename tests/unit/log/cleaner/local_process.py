"""A cleaner's process without a process: its service, over the files of a test."""

from __future__ import annotations

from engine.errors import StorageError
from engine.host.memory import MachineStopped, MemoryFiles
from engine.host.ports import Files, SideProcess, SideProcessGone
from engine.log.cleaner.cleaner_messages import CLEANER_MODULE
from engine.log.cleaner.cleaner_process import CleanerService


class HastyClock:
    """A clock that every look finds a second later: a service tells of each step."""

    def __init__(self) -> None:
        self._now_ms = 0

    def wall_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        self._now_ms += 1000
        return self._now_ms


class LocalProcess:
    """Answers as the process does; `dies_at` is the changing file operation that it dies before."""

    def __init__(self, files: Files, dies_at: int | None = None) -> None:
        self._service = CleanerService(files, HastyClock(), lambda: None)
        self._files = files
        self._operations_left = dies_at
        self.is_gone = False
        self.is_closed = False

    def request(self, message: bytes) -> bytes:
        assert not self.is_closed
        if self.is_gone:
            raise SideProcessGone(1)
        if self._operations_left is None:
            return self._service.answer_to(message)
        assert isinstance(self._files, MemoryFiles)
        before = self._files.operations
        self._files.stop_at(before + self._operations_left)
        try:
            return self._service.answer_to(message)
        except MachineStopped:
            self.is_gone = True
            raise SideProcessGone(1) from None
        finally:
            self._operations_left -= self._files.operations - before
            self._files.go_on()

    def dies_before(self, operation: int) -> None:
        """Let it die before one of its next changing file operations, counted from 0."""
        self._operations_left = operation

    def close(self) -> None:
        self.is_closed = True


class LocalProcesses:
    """Starts them, and keeps them to be looked at; the first one may die."""

    def __init__(self, files: Files, *, dies_at: int | None = None) -> None:
        self._files = files
        self._dies_at = dies_at
        self.started: list[LocalProcess] = []
        self.refuses = False

    def start(self, module: str) -> SideProcess:
        assert module == CLEANER_MODULE
        if self.refuses:
            raise StorageError("cannot start it")
        self.started.append(LocalProcess(self._files, self._dies_at))
        self._dies_at = None
        return self.started[-1]
