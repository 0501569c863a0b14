"""The processes of a broker's cleaner: one for each running cleaning, kept for a while afterwards.

Without processes (in a simulation, or if a start fails) and for small cleanings a thread of the
broker does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.errors import StorageError
from engine.host.ports import SideProcess
from engine.limits import CLEANER_PROCESS_BYTES_MIN, CLEANER_PROCESS_IDLE_MS
from engine.log.cleaner import log_messages
from engine.log.cleaner.cleaner_messages import CLEANER_MODULE, ProcessWork
from engine.log.cleaner.cleaning import CleaningRun

#: Starts a Python module as a separate process; raises StorageError.
StartProcess: TypeAlias = Callable[[str], SideProcess]


class _Idle(NamedTuple):
    process: SideProcess
    since_ms: int


class WorkProcesses:
    """A pool of cleaner processes, one for each cleaning that runs at the same time."""

    def __init__(self, start: StartProcess | None) -> None:
        self._start = start
        self._idle: list[_Idle] = []

    def take(self, run: CleaningRun) -> SideProcess | None:
        """Assign a cleaning to a process and return it; None if a thread must do the work.

        A thread does the work of logs below CLEANER_PROCESS_BYTES_MIN, and if no process starts.
        """
        cleanable = run.cleanable
        size_bytes = cleanable.clean_bytes + cleanable.cleanable_bytes
        if self._start is None or size_bytes < CLEANER_PROCESS_BYTES_MIN:
            return None
        if self._idle:
            process = self._idle.pop().process
        else:
            try:
                process = self._start(CLEANER_MODULE)
            except StorageError as error:
                log_messages.log_process_not_started(error)
                return None
        run.work = ProcessWork(process, run.facts)
        return process

    def give_back(self, process: SideProcess, now_ms: int) -> None:
        """Keep a process whose cleaning has ended for the next cleaning."""
        self._idle.append(_Idle(process, now_ms))

    def remove_unused(self, now_ms: int) -> list[SideProcess]:
        """Remove and return the processes that were idle for CLEANER_PROCESS_IDLE_MS.

        The caller ends them. A removed process gets no further cleaning.
        """
        unused = [one for one in self._idle if now_ms - one.since_ms >= CLEANER_PROCESS_IDLE_MS]
        self._idle = [one for one in self._idle if one not in unused]
        return [one.process for one in unused]

    def close(self) -> None:
        """End all idle processes, and wait until they have ended."""
        idle, self._idle = self._idle, []
        for one in idle:
            one.process.close()
