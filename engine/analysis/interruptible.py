"""Work on a thread of its own, so that Ctrl-C and SIGTERM end it at any time.

Python handles signals in its main thread alone, between two instructions of its own: not while that
thread is inside DuckDB, or waits for Spark's JVM, which may take hours.

```
main thread     waits ─ signal ─► has the work stop ─► waits for its end, END_S at most
work's thread   result, or what the stop makes of it
```

Work that does not end within END_S is left behind: its thread keeps no process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from engine.host.deferred_signals import signals_blocked

Result = TypeVar("Result")

_NAME: Final = "kctl-query"
#: How long work may take to end once it is to stop: some joins of DuckDB heed no interrupt.
END_S = 1.0
#: How often the main thread lets Python run handlers of signals that another thread took.
_WAIT_S: Final = 0.2


class _Running(Generic[Result]):
    """Work on its thread, as both threads see it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self.ended = threading.Event()
        self.results: list[Result] = []
        #: Why there is no result. None while the work runs.
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Run to the end; on the work's thread."""
        try:
            self.results.append(self._work())
        except BaseException as error:
            self.failure = error
        finally:
            self.ended.set()


def run_interruptible(
    work: Callable[[], Result], stop: Callable[[threading.Event, float], None]
) -> Result:
    """Return what `work` returns, on another thread.

    Raises its errors, and what a signal's handler raises in this thread, once the work has ended.
    `stop` has the work end: it gets the event of its end, and for how many seconds it may wait.
    """
    running = _Running(work)
    thread = threading.Thread(target=running.run, name=_NAME, daemon=True)
    try:
        # The threads of the work inherit that they get no signals: this one is to be woken up.
        with signals_blocked():
            thread.start()
        while not running.ended.wait(_WAIT_S):
            pass
    except BaseException:
        stop(running.ended, END_S)
        raise
    if running.failure is not None:
        raise running.failure
    return running.results.pop()


def is_left_behind() -> bool:
    """Return whether work of this process did not stop when it was to."""
    return any(thread.name == _NAME for thread in threading.enumerate())
