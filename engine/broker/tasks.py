"""Delayed tasks, periodic tasks, and work on worker threads.

Work that blocks (fsync of a rolled segment) runs on worker threads; all other tasks run on the
loop's thread. A task over thousands of logs runs in steps over several turns of the loop
(`LoopTurns`). A periodic task that fails is reported and continues, also after an unexpected
exception.

Source: SCH-1, SCH-2, SCH-5 … SCH-9; Kafka's KafkaScheduler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from engine.errors import EngineError, StorageError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Timers, Workers
from engine.host.turns import LoopTurns, never
from engine.log.tasks import Steps


class LoopTasks:
    """Runs tasks until `stop`; implements `engine.log.tasks.LogTasks`."""

    def __init__(
        self,
        timers: Timers,
        clock: Clock,
        *,
        workers: Workers,
        on_failure: Callable[[str, EngineError], None],
        ends_early: Callable[[], bool] = never,
    ) -> None:
        """Create the tasks of an event loop, without any; `workers` run offloaded work on threads.

        `on_failure` gets the name of a task and its EngineError. `ends_early` returns True if work
        in several turns of the loop has to yield early.
        """
        self._turns = LoopTurns(timers, clock, ends_early)
        self._timers = timers
        self._clock = clock
        self._workers = workers
        self._on_failure = on_failure
        #: Cancels the timer of each scheduled task, by the task's number.
        self._cancels: dict[int, Callable[[], None]] = {}
        #: Number of the task that was scheduled last.
        self._number = 0
        self._is_stopped = False
        #: Completions of works that have ended on worker threads, to be called on the loop in this
        #: order.
        self._ended: deque[Callable[[], None]] = deque()

    def once(self, name: str, delay_ms: int, action: Callable[[], object]) -> None:
        """Run `action` once after `delay_ms`; an EngineError is reported to `on_failure`."""
        self._number += 1
        number = self._number

        def run() -> None:
            """Run the action, whose timer is over."""
            del self._cancels[number]
            self._run_reporting(name, action)

        if not self._is_stopped:
            due_ms = self._clock.monotonic_ms() + delay_ms
            self._cancels[number] = self._timers.call_at(due_ms, run)

    def every(
        self, name: str, period_ms: int, action: Callable[[], object], *, first_after_ms: int
    ) -> None:
        """Run `action` periodically, `period_ms` after the end of the run before."""

        def run() -> None:
            """Run the action once and schedule the next run, also after an exception."""
            try:
                self._run_reporting(name, action)
            finally:
                # An unexpected exception is raised on the loop, but does not end the periodic task.
                self.once(name, period_ms, run)

        self.once(name, first_after_ms, run)

    def every_in_steps(
        self, name: str, period_ms: int, steps: Callable[[], Steps], *, first_after_ms: int
    ) -> None:
        """Run the steps that `steps` returns periodically, `period_ms` after the last ones.

        Between two steps the event loop may serve other work.
        """

        def again() -> None:
            """Schedule the next run of the steps."""
            self.once(name, period_ms, run)

        def run() -> None:
            """Run the steps in several turns."""
            self.run_in_steps(name, steps(), again)

        self.once(name, first_after_ms, run)

    def run_in_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run steps over several turns of the event loop, then call `done`, also after an error."""
        drive(self._take_steps(name, steps, done))

    async def _take_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run a task's steps over several turns of the loop, then call `done`.

        An EngineError ends the steps and is reported; `stop` ends them without `done`.
        """
        share = self._turns.begin()
        try:
            for _ in steps:
                if share.is_over():
                    await share.next()
                    if self._is_stopped:
                        return
        except EngineError as error:
            self._on_failure(name, error)
        finally:
            if not self._is_stopped:
                done()

    def _run_reporting(self, name: str, action: Callable[[], object]) -> None:
        """Call `action`; report an EngineError instead of raising it."""
        try:
            action()
        except EngineError as error:
            self._on_failure(name, error)

    def offload(
        self,
        name: str,
        work: Callable[[], None],
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Run `work` on a worker thread, then `done` on the loop with its StorageError or None."""

        def run() -> None:
            """Do the work on the worker thread, then schedule its completion on the event loop."""
            self._ended.append(_run_on_worker(work, done))
            self._timers.call_from_thread(self._call_done)

        self._workers.submit(name, run)

    def stop(self) -> None:
        """Cancel the scheduled tasks, wait for worker threads, and call their completions."""
        self._is_stopped = True
        for cancel in self._cancels.values():
            cancel()
        self._cancels.clear()
        self._workers.stop()
        self._call_done()

    def _call_done(self) -> None:
        """Call the completions of offloaded works that have ended, on the event loop."""
        while self._ended:
            self._ended.popleft()()


def _run_on_worker(
    work: Callable[[], None], done: Callable[[StorageError | None], None]
) -> Callable[[], None]:
    """Do offloaded work on the worker thread; return its completion for the event loop."""
    try:
        work()
    except StorageError as error:
        return partial(done, error)
    except BaseException as fault:
        # In the thread the exception would be lost; it is raised on the loop.
        return partial(_raise, fault)
    return partial(done, None)


def _raise(fault: BaseException) -> None:
    """Raise an exception of a worker thread, on the event loop."""
    raise fault
