"""Run work on a thread of its own, so that Ctrl-C and SIGTERM can interrupt it at any time.

Python runs signal handlers only in the main thread, between two of its instructions: not while
that thread is inside DuckDB or waits for Spark's JVM, which may take hours.

```
main thread     waits ─ signal ─► stops the work ─► waits for its end, at most END_S
work's thread   result, or the error with which the work stops
```

Work that does not end within END_S is abandoned: its daemon thread does not keep the process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from engine.host.deferred_signals import block_signals

Result = TypeVar("Result")

_NAME: Final = "kctl-query"
#: How long stopped work may take to end: some joins of DuckDB ignore interrupts.
END_S = 1.0
#: How often the main thread lets Python run handlers of signals that another thread took.
_WAIT_S: Final = 0.2


class _Running(Generic[Result]):
    """A function that runs on its own thread, and its result for the main thread."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self.ended = threading.Event()
        self.results: list[Result] = []
        #: The error of the function. None while it runs, and after success.
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Run the function to its end, on its own thread; keep its result or its error."""
        try:
            self.results.append(self._work())
        except BaseException as error:
            self.failure = error
        finally:
            self.ended.set()


def run_interruptible(
    work: Callable[[], Result], stop: Callable[[threading.Event, float], None]
) -> Result:
    """Run `work` on another thread and return its result, so that signals can interrupt it.

    Raises the errors of `work`, and the exception of a signal handler in this thread: in that case
    `stop` is called before, with the event that `work` has ended and the seconds to wait for it at
    most; it must make `work` end.
    """
    running = _Running(work)
    thread = threading.Thread(target=running.run, name=_NAME, daemon=True)
    try:
        # Threads inherit the blocked signals: signals must wake up this thread.
        with block_signals():
            thread.start()
        while not running.ended.wait(_WAIT_S):
            pass
    except BaseException:
        stop(running.ended, END_S)
        if running.ended.is_set():
            # It is past its work: `is_left_behind` must not see it any more.
            thread.join()
        raise
    if running.failure is not None:
        raise running.failure
    return running.results.pop()


def is_left_behind() -> bool:
    """Return True if work of `run_interruptible` was stopped and its thread has not ended."""
    return any(thread.name == _NAME for thread in threading.enumerate())
