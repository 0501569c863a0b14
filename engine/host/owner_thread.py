"""A thread that is the only user of an object which is not thread-safe.

```
submit(work) ──> queue ──> the thread does it ──> its Future
                   └─ empty ──> idle() ──> sleeps as long as it returns, or until work comes
```

An error of `idle` ends the thread: the queued works fail with it, and later `submit` calls raise
RuntimeError with it as the cause.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from engine.host.process_guard import ProcessGuard

T = TypeVar("T")


class OwnerThread:
    """Runs submitted functions one after another on one thread; `close` ends the thread."""

    def __init__(
        self,
        name: str,
        *,
        interrupt: Callable[[], None],
        proceed: Callable[[], None],
        idle: Callable[[], int | None],
    ) -> None:
        """Start the thread.

        `interrupt` ends the wait of the function in progress; the thread that submits the next one
        calls it. `proceed` is called before a function with no other one queued after it, and
        before `idle`. `idle` does due work between submitted functions, and returns the
        milliseconds until its next call, None for never.
        """
        #: Refuses calls in a forked child process, which does not have the thread.
        self._guard = ProcessGuard()
        self._interrupt = interrupt
        self._proceed = proceed
        self._idle = idle
        #: The queued works, each with the future of its result.
        self._works: deque[tuple[Callable[[], object], Future[Any]]] = deque()
        #: Guards the fields below and `_works`; notified when a work is submitted, and at the
        #: close.
        self._condition = threading.Condition()
        self._is_closed = False
        #: The error of `idle` that ended the thread; None without one.
        self._error: BaseException | None = None
        #: Whether the thread waits for the next work. If not, a work is running, and `interrupt`
        #: ends a wait of that work.
        self._is_asleep = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a function for the thread; return the future of its result.

        Errors: RuntimeError after `close`, UsedAfterFork in a forked child, which lacks the thread.
        """
        self._guard.check()
        future: Future[T] = Future()
        with self._condition:
            if self._is_closed:
                raise RuntimeError("the thread has ended") from self._error
            self._works.append((work, future))
            self._wake_or_interrupt()
        return future

    def close(self) -> None:
        """Run the queued works, end the thread, and wait for its end. Errors: UsedAfterFork."""
        self._guard.check()
        with self._condition:
            self._is_closed = True
            self._wake_or_interrupt()
        self._thread.join()

    def _wake_or_interrupt(self) -> None:
        """Wake the sleeping thread, or interrupt its current work; called under the lock.

        The lock ensures that no wait of a later work is interrupted.
        """
        if self._is_asleep:
            self._is_asleep = False
            self._condition.notify()
        else:
            self._interrupt()

    def _run(self) -> None:
        """Run queued works in order until the thread is closed and none is left.

        Call `idle` while none is queued.
        """
        while True:
            with self._condition:
                if not self._works and self._is_closed:
                    return
                taken = self._works.popleft() if self._works else None
                if not self._works and not self._is_closed:
                    # No work is queued after it, so that its waits need not be interrupted.
                    self._proceed()
            if taken is None:
                self._run_idle()
            else:
                self._run_work(*taken)

    def _run_idle(self) -> None:
        """Call `idle`, then sleep for the ms that it returns, or until work is submitted.

        None means no bound. An exception of `idle` ends the thread and fails the queued works.
        """
        try:
            duration_ms = self._idle()
        except BaseException as error:
            # The thread ends: fail the queued works, as nothing else would complete their futures.
            with self._condition:
                self._is_closed, self._error = True, error
                works, self._works = self._works, deque()
            for _, future in works:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            raise
        with self._condition:
            if not self._works and not self._is_closed and duration_ms != 0:
                self._is_asleep = True
                self._condition.wait(None if duration_ms is None else duration_ms / 1000)
                self._is_asleep = False

    @staticmethod
    def _run_work(work: Callable[[], T], future: Future[T]) -> None:
        """Run work and complete its future with the result or exception; skip it if cancelled."""
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
