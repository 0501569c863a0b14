"""The process that does the work of cleanings for a broker; its messages: `cleaner_messages.py`.

It is a process, because a computing thread would delay the broker's loop: both share one
interpreter. It knows neither logs nor rules: it opens segments by their paths and writes only
`.cleaned` files. It ends when its broker ends, even if the broker is killed.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable

from engine.host.ports import Clock, Files
from engine.host.real import RealClock
from engine.host.side_process import FilesOfOwner, owner_pid, serve_owner
from engine.limits import CLEANER_CHECK_MS
from engine.log.cleaner.cleaner_messages import (
    Answer,
    CleanerCommand,
    Done,
    Progress,
    Request,
    failure_message,
)
from engine.log.cleaner.cleaning_facts import CleaningFacts, WorkSteps
from engine.log.cleaner.segment_cleaner import SegmentCleaner
from engine.native.clean_records import load_or_compile_cleaner


class CleanerService:
    """Does the work of one cleaning at a time, part by part.

    The facts of another cleaning discard the current cleaning. `on_begin` is called before each
    cleaning.
    """

    def __init__(self, files: Files, clock: Clock, on_begin: Callable[[], object]) -> None:
        self._files = files
        self._clock = clock
        self._on_begin = on_begin
        #: The current cleaning and its current part. None before the first facts.
        self._work: SegmentCleaner | None = None
        self._steps: WorkSteps | None = None

    def answer_to(self, message: bytes) -> bytes:
        """Return the response to a message.

        Raises the error of a message that cannot be decoded.
        """
        request: Request = pickle.loads(message)
        return pickle.dumps(self._answer(request))

    def _answer(self, request: Request) -> Answer:
        """Begin or continue the requested work of a cleaning; return Progress, Done or Failed.

        A CleaningFacts begins a cleaning with the map of keys, a SegmentGroup rewrites one group,
        and a CleanerCommand continues or stops the running part.
        """
        if request is CleanerCommand.STOP:
            return self._stop_steps()
        if isinstance(request, CleaningFacts):
            # The last cleaning's map is released before this one's is allocated.
            self._work = self._steps = None
            self._on_begin()
            try:
                self._work = SegmentCleaner(self._files, request)
            except Exception as error:
                # The map may be larger than the free memory.
                return failure_message(error)
            self._steps = self._work.build_map()
        elif not isinstance(request, CleanerCommand):
            assert self._work is not None
            self._steps = self._work.write_group(request)
        return self._run_steps()

    def _run_steps(self) -> Answer:
        """Run the steps for at most CLEANER_CHECK_MS; return Progress, Done or Failed.

        The caller sends GO_ON after Progress, so that the broker's throttle and stop requests apply
        in between.
        """
        assert self._steps is not None
        until_ms, done_bytes = self._clock.monotonic_ms() + CLEANER_CHECK_MS, 0
        try:
            for step_bytes in self._steps:
                done_bytes += step_bytes
                if self._clock.monotonic_ms() >= until_ms:
                    return Progress(done_bytes)
        except Exception as error:
            return failure_message(error)
        return self._counts_as_done()

    def _stop_steps(self) -> Answer:
        """Close the running steps; return the counts up to now."""
        assert self._steps is not None
        self._steps.close()
        return self._counts_as_done()

    def _counts_as_done(self) -> Done:
        """Return the counts of all parts of the cleaning up to now, as the answer Done."""
        assert self._work is not None
        return Done(self._work.counts, self._work.latest_offset)


def main() -> int:
    """Answer the requests of the broker that started this process, until it ends; return 0."""
    service = CleanerService(FilesOfOwner(owner_pid()), RealClock(), load_or_compile_cleaner)
    serve_owner(service.answer_to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
