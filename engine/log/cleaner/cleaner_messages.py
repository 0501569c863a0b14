"""The messages between a broker and the process that does the work of a cleaning.

```
broker                                   cleaner's process (`cleaner_process.py`)
build the map of these facts        ──>
                                    <──  so many bytes done      ┐ every CLEANER_TOLD_MS: the
go on | stop                        ──>                          ┘ broker pauses, or ends it
                                    <──  done: counts, the map's last offset | an error
write this group                    ──>  … the same, with the map that it has kept
```

Both are of one installation, so that messages are pickled objects of the modules here.
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

#: The module that serves these messages.
CLEANER_MODULE = "engine.log.cleaner.cleaner_process"


class CleanerCommand(Enum):
    """The broker's message to work under way."""

    GO_ON = "go on"
    STOP = "stop"


class Progress(NamedTuple):
    """Bytes that were read and written since the last message."""

    done_bytes: int


class Done(NamedTuple):
    """The work on a request has ended, or was stopped."""

    counts: CleaningCounts
    latest_offset: int


class Failed(NamedTuple):
    """An EngineError taken apart for pickling.

    Its constructor takes other arguments than `args`.
    """

    kind: type[EngineError]
    args: tuple[object, ...]
    fields: dict[str, object]

    def error(self) -> EngineError:
        """Return the error as it was raised."""
        error = self.kind.__new__(self.kind, *self.args)
        error.__dict__.update(self.fields)
        return error


Request: TypeAlias = CleaningFacts | SegmentGroup | CleanerCommand
Answer: TypeAlias = Progress | Done | Failed


class CleaningFault(EngineError):
    """The code that cleans has failed over a log, in the process that does the work."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


def failed(error: Exception) -> Failed:
    """Return the message of an error; a fault of our code has its traceback."""
    if isinstance(error, EngineError):
        return Failed(type(error), error.args, dict(vars(error)))
    lines = format_exception(error)
    fault = CleaningFault("".join(lines).rstrip())
    return Failed(CleaningFault, fault.args, dict(vars(fault)))


class ProcessWork:
    """The work of one cleaning, by a process that does nothing else meanwhile."""

    def __init__(self, process: SideProcess, facts: CleaningFacts) -> None:
        """`process` must have no other work until the cleaning has ended."""
        self.process = process
        self.counts = CleaningCounts()
        #: Last offset of the map that the process has built (inclusive); with `counts` of the last
        #: response.
        self.latest_offset = facts.start_offset - 1
        self._facts = facts

    def build_map(self) -> WorkSteps:
        """Note the last offset of each key in the dirty segments, in the process.

        Raises the error of the process, or SideProcessGone.
        """
        return self._steps(self._facts)

    def write_group(self, group: SegmentGroup) -> WorkSteps:
        """Write the kept records of a group; raises as above. An ended process leaves files."""
        return self._steps(group)

    def _steps(self, request: CleaningFacts | SegmentGroup) -> WorkSteps:
        """Have the process do one part of the work; yield the bytes done of each step."""
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
