"""The tasks that a log passes to its driver: delayed work, work in steps, work on a worker thread.

A log never waits and has no threads. It passes on the tasks that Kafka gives to its scheduler:
removing files after their delay, syncing a rolled segment, writing checkpoints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from engine.errors import StorageError
from engine.log.flush_times import FlushTimes
from engine.model import TopicPartition

#: Work over many logs that yields after each step: the loop may serve requests there, so the logs
#: of later steps may have changed.
Steps: TypeAlias = Iterator[None]


class LogTasks(Protocol):
    """Runs the tasks of logs; task names are Kafka's, for messages."""

    def once(self, name: str, delay_ms: int, action: Callable[[], object]) -> None:
        """Run `action` once after a delay, on the thread that owns the logs."""
        ...

    def every(
        self, name: str, period_ms: int, action: Callable[[], object], *, first_after_ms: int
    ) -> None:
        """Run `action` periodically on the same thread, until the process stops."""
        ...

    def every_in_steps(
        self, name: str, period_ms: int, steps: Callable[[], Steps], *, first_after_ms: int
    ) -> None:
        """Run `steps` periodically; the period starts when all steps are done."""
        ...

    def run_in_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run all steps, possibly in several turns of the loop; then call `done`.

        `name` names the task where its error is logged. A step that fails is the last one; `done`
        is called nevertheless. After the broker's tasks were stopped no step runs, and `done` is
        not called.
        """
        ...

    def offload(
        self,
        name: str,
        work: Callable[[], None],
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Run `work`, which may be slow, on a worker thread if possible; then `done` on the loop.

        `done` is called with the StorageError that `work` raised, None without an error.
        """
        ...


class LogHooks(NamedTuple):
    """The functions that a log calls, in addition to its files.

    `on_failure` is called with an I/O error from a worker thread. `on_truncated` must write the
    log's recovery point before it returns, because records appended above a checkpoint that is too
    high would not be read after a power cut. It is called on a worker thread, and raises
    StorageError. `jitter_ms` returns a random number in [0, bound).
    """

    tasks: LogTasks
    on_failure: Callable[[StorageError], None]
    on_truncated: Callable[[TopicPartition], None]
    jitter_ms: Callable[[int], int]
    flush_times: FlushTimes


def take_all(steps: Steps) -> None:
    """Run all steps of a generator without yielding to the event loop between them."""
    deque(steps, maxlen=0)


class InlineTasks:
    """Runs work immediately and keeps delayed actions until requested, for tools and tests."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, int, Callable[[], object]]] = []
        self.periodic: list[tuple[str, int, Callable[[], object]]] = []

    def once(self, name: str, delay_ms: int, action: Callable[[], object]) -> None:
        """Keep the action for `run_waiting`."""
        self.waiting.append((name, delay_ms, action))

    def every(
        self, name: str, period_ms: int, action: Callable[[], object], *, first_after_ms: int
    ) -> None:
        """Keep the action and its period for `run_periodic`, which a test calls.

        `first_after_ms` is not used: nothing here runs by a clock.
        """
        self.periodic.append((name, period_ms, action))

    def every_in_steps(
        self, name: str, period_ms: int, steps: Callable[[], Steps], *, first_after_ms: int
    ) -> None:
        """Keep a function that runs all steps for `run_periodic`, which a test calls."""
        self.periodic.append((name, period_ms, lambda: take_all(steps())))

    def run_in_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run all steps and `done` immediately."""
        try:
            take_all(steps)
        finally:
            done()

    def offload(
        self,
        name: str,
        work: Callable[[], None],
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Run the work and `done` immediately."""
        failure = None
        try:
            work()
        except StorageError as error:
            failure = error
        done(failure)

    def run_waiting(self) -> None:
        """Run all delayed actions, regardless of their delays."""
        waiting, self.waiting = self.waiting, []
        for _, _, action in waiting:
            action()

    def run_periodic(self, name: str) -> None:
        """Run the periodic actions of this name once."""
        for task_name, _, action in self.periodic:
            if task_name == name:
                action()


class DeferredTasks:
    """Keeps tasks until `release`; later tasks are passed on immediately.

    Used for logs that are opened on separate threads: their tasks belong to the loop's thread.
    """

    def __init__(self, tasks: LogTasks) -> None:
        self._tasks = tasks
        self._kept: list[Callable[[], None]] | None = []

    def release(self) -> None:
        """Pass the kept tasks on, in order; later tasks are passed on immediately.

        Called after the threads that load logs have ended: tasks belong to the event loop's thread.
        """
        kept, self._kept = self._kept, None
        for action in kept or ():
            action()

    def once(self, name: str, delay_ms: int, action: Callable[[], object]) -> None:
        """Run `action` once after a delay, which begins at `release`."""
        self._run_or_defer(lambda: self._tasks.once(name, delay_ms, action))

    def every(
        self, name: str, period_ms: int, action: Callable[[], object], *, first_after_ms: int
    ) -> None:
        """Run `action` periodically, from `release` on."""
        self._run_or_defer(
            lambda: self._tasks.every(name, period_ms, action, first_after_ms=first_after_ms)
        )

    def every_in_steps(
        self, name: str, period_ms: int, steps: Callable[[], Steps], *, first_after_ms: int
    ) -> None:
        """Run steps periodically, from `release` on."""
        every = self._tasks.every_in_steps
        self._run_or_defer(lambda: every(name, period_ms, steps, first_after_ms=first_after_ms))

    def run_in_steps(self, name: str, steps: Steps, done: Callable[[], None]) -> None:
        """Run all steps, then run `done`, not before `release`."""
        self._run_or_defer(lambda: self._tasks.run_in_steps(name, steps, done))

    def offload(
        self,
        name: str,
        work: Callable[[], None],
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Run `work` on a worker thread, then `done` on the loop, not before `release`."""
        self._run_or_defer(lambda: self._tasks.offload(name, work, done))

    def _run_or_defer(self, call: Callable[[], None]) -> None:
        """Run a scheduling call immediately after `release`; before, store it for `release`."""
        if self._kept is None:
            call()
        else:
            self._kept.append(call)
