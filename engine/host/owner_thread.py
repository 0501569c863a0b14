"""A thread that alone uses an object which is not for several threads.

```
submit(work) ──> queue ──> the thread does it ──> its Future
                   └─ empty ──> idle() ──> sleeps as long as it returns, or until work comes
```

An error of `idle` ends the thread, and is the error of all works that wait and the cause of that of
all that come.
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
        #: Works that wait for the thread, each with the future of its result.
        self._works: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        #: Guards the fields below and `_works`; notified when a work is submitted, and at the
        #: close.
        self._condition = threading.Condition()
        self._is_closed = False
        #: The error that ended the thread, for callers that come later.
        self._error: BaseException | None = None
        #: Whether the thread waits for the next work. If not, a work is running, and `interrupt`
        #: ends a wait of that work.
        self._is_asleep = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue a work for the thread; return the future of its result.

        Errors: RuntimeError after `close`, UsedAfterFork in a forked child, which lacks the thread.
        """
        self._guard.check()
        future: Future[T] = Future()
        with self._condition:
            if self._is_closed:
                raise RuntimeError("the thread has ended") from self._error
            self._works.append((work, future))
            self._hurry()
        return future

    def close(self) -> None:
        """Let the works that wait be done, and end; waits for the thread. Errors: UsedAfterFork."""
        self._guard.check()
        with self._condition:
            self._is_closed = True
            self._hurry()
        self._thread.join()

    def _hurry(self) -> None:
        """End the wait of the thread. Under the lock, so that nothing else is ended."""
        if self._is_asleep:
            self._is_asleep = False
            self._condition.notify()
        else:
            self._interrupt()

    def _run(self) -> None:
        """Do works in order until the thread is closed and has no more; idle without works."""
        while True:
            with self._condition:
                if not self._works and self._is_closed:
                    return
                taken = self._works.popleft() if self._works else None
                if not self._works and not self._is_closed:
                    # Nobody is behind it: it may wait.
                    self._proceed()
            if taken is None:
                self._do_idle()
            else:
                self._do(*taken)

    def _do_idle(self) -> None:
        """Do the due work, then sleep until more is due or submitted."""
        try:
            duration_ms = self._idle()
        except BaseException as error:
            # A thread that has ended does nothing for anybody: what waits for it must not wait.
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
    def _do(work: Callable[[], Any], future: Future[Any]) -> None:
        """Run work and complete its future with the result or exception; skip it if cancelled."""
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
