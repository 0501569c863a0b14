"""The messages between a broker and the process that does the work of a cleaning.

```
broker                                   cleaner's process (`cleaner_process.py`)
build the map of these facts        ──>
                                    <──  bytes done since the last message  ┐ every CLEANER_CHECK_MS
go on | stop                        ──>                                     ┘ (the broker throttles)
                                    <──  done: counts, the map's last offset | an error
write this group                    ──>  … the same, with the map that the process kept
```

Both processes run the same installation, so messages are pickled objects.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from enum import Enum
from traceback import format_exception
from typing import NamedTuple, TypeAlias

from engine.errors import EngineError
from engine.host.ports import SideProcess, SideProcessGone
from engine.log.cleaner.cleaning_facts import (
    CleaningCounts,
    CleaningFacts,
    SegmentGroup,
    WorkSteps,
)

#: Name of the module that the cleaner's process runs.
CLEANER_MODULE = "engine.log.cleaner.cleaner_process"


class CleanerCommand(Enum):
    """The broker's reply to a Progress: continue or stop the work."""

    GO_ON = "go on"
    STOP = "stop"


class Progress(NamedTuple):
    """Bytes that were read and written since the last message."""

    done_bytes: int


class Done(NamedTuple):
    """The work of a request has ended, or was stopped."""

    counts: CleaningCounts
    latest_offset: int


class Failed(NamedTuple):
    """An EngineError in parts that can be pickled.

    Unpickling the error itself would call its constructor with `args`, which do not fit it.
    """

    kind: type[EngineError]
    args: tuple[object, ...]
    fields: dict[str, object]

    def error(self) -> EngineError:
        """Return the exception that the cleaner process raised, rebuilt from its parts."""
        error = self.kind.__new__(self.kind, *self.args)
        error.__dict__.update(self.fields)
        return error


Request: TypeAlias = CleaningFacts | SegmentGroup | CleanerCommand
Answer: TypeAlias = Progress | Done | Failed


class CleaningFault(EngineError):
    """The cleaner's code raised an error that is no EngineError, in the cleaner's process."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


def failure_message(error: Exception) -> Failed:
    """Return the answer that carries an error from the cleaner process to the broker.

    An error that is no EngineError is sent with its traceback as a CleaningFault.
    """
    if isinstance(error, EngineError):
        return Failed(type(error), error.args, dict(vars(error)))
    lines = format_exception(error)
    fault = CleaningFault("".join(lines).rstrip())
    return Failed(CleaningFault, fault.args, dict(vars(fault)))


class ProcessWork:
    """The work of one cleaning, done by the cleaner's process."""

    def __init__(self, process: SideProcess, facts: CleaningFacts) -> None:
        """Prepare a cleaning by `process`, which must do no other work until it ends."""
        self.process = process
        self.counts = CleaningCounts()
        #: Last offset (inclusive) of the map that the process has built; like `counts`, by its last
        #: response.
        self.latest_offset = facts.start_offset - 1
        self._facts = facts

    def build_map(self) -> WorkSteps:
        """Note the last offset of each key in the dirty segments, in the process.

        Raises the error of the process, or SideProcessGone.
        """
        return self._request_steps(self._facts)

    def write_group(self, group: SegmentGroup) -> WorkSteps:
        """Have the process write the kept records of a group to `.cleaned` files.

        Raises the error of the process, or SideProcessGone; the files then remain.
        """
        return self._request_steps(group)

    def _request_steps(self, request: CleaningFacts | SegmentGroup) -> WorkSteps:
        """Send one request to the cleaner process; yield the bytes that each of its steps has done.

        A caller that closes the generator stops the process's work. Raises the error of a failed
        step.
        """
        answer = self._exchange(request)
        while isinstance(answer, Progress):
            try:
                yield answer.done_bytes
            except GeneratorExit:
                with suppress(SideProcessGone):
                    self._exchange(CleanerCommand.STOP)
                raise
            answer = self._exchange(CleanerCommand.GO_ON)
        if isinstance(answer, Failed):
            raise answer.error()
        self.counts, self.latest_offset = answer

    def _exchange(self, request: Request) -> Answer:
        """Send a request to the cleaner's process, and wait for the answer."""
        answer: Answer = pickle.loads(self.process.request(pickle.dumps(request)))
        return answer
