"""Periodic work, delays, and work on a worker thread, on the timers of one process.

Tasks that may take long (making a rolled segment durable) run on separate threads; others run on
the loop's thread, one after the other. A task over thousands of logs is work in steps, and takes
as many turns of the loop as it needs (`LoopTurns`). A task that fails is reported and comes again,
after a fault of our code too.

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
    """Runs tasks until it is stopped; see `engine.log.tasks.LogTasks` for the calls."""

    def __init__(
        self,
        timers: Timers,
        clock: Clock,
        *,
        workers: Workers,
        on_failure: Callable[[str, EngineError], None],
        ends_early: Callable[[], bool] = never,
    ) -> None:
        """`ends_early` returns whether a share of a turn is over before its time.

        `on_failure` reports the error of a task, with the task's name.
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
        #: Completions of works that have ended on their threads, to be called on the loop, in that
        #: order.
        self._ended: deque[Callable[[], None]] = deque()

    def once(self, name: str, delay_ms: int, action: Callable[[], object]) -> None:
        """Run `action` once after a delay."""
        self._number += 1
        number = self._number

        def run() -> None:
            del self._cancels[number]
            self._run_reporting(name, action)

        if not self._is_stopped:
            due_ms = self._clock.monotonic_ms() + delay_ms
            self._cancels[number] = self._timers.call_at(due_ms, run)

    def every(
        self, name: str, period_ms: int, action: Callable[[], object], *, first_after_ms: int
    ) -> None:
        """Run `action` again and again, a period after the end of the last time."""

        def run() -> None:
            """Run the action once and schedule the next run, also after a fault."""
            try:
                self._run_reporting(name, action)
            finally:
                # A fault of our code is seen on the loop, and ends no periodic task.
                self.once(name, period_ms, run)

        self.once(name, first_after_ms, run)

    def every_in_steps(
        self, name: str, period_ms: int, steps: Callable[[], Steps], *, first_after_ms: int
    ) -> None:
        """Run steps periodically, a period after the end of the last ones."""

        def again() -> None:
            self.once(name, period_ms, run)

        def run() -> None:
            self.in_steps(name, steps(), again)

        self.once(name, first_after_ms, run)

    def in_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run steps in shares of the loop's turns, then run `done`, also after an error."""
        drive(self._take_steps(name, steps, done))

    async def _take_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run the steps of one task in turns of the loop; report an error, then call `done`."""
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
        """Run `work` on a thread, then `done` on the loop with the StorageError it raised."""

        def run() -> None:
            self._ended.append(_done_with(work, done))
            self._timers.call_from_thread(self._call_done)

        self._workers.submit(name, run)

    def stop(self) -> None:
        """Cancel the scheduled tasks, wait for those on a worker thread, and complete them."""
        self._is_stopped = True
        for cancel in self._cancels.values():
            cancel()
        self._cancels.clear()
        self._workers.stop()
        self._call_done()

    def _call_done(self) -> None:
        """Call `done` on the loop for each work that has ended on a thread."""
        while self._ended:
            self._ended.popleft()()


def _done_with(
    work: Callable[[], None], done: Callable[[StorageError | None], None]
) -> Callable[[], None]:
    """Do work, and return the function that is left for the loop."""
    try:
        work()
    except StorageError as error:
        return partial(done, error)
    except BaseException as fault:
        # In a thread it would be lost; on the loop it is seen as any other.
        return partial(_raise, fault)
    return partial(done, None)


def _raise(fault: BaseException) -> None:
    """Raise the fault of a worker thread on the loop, where it is not lost."""
    raise fault
