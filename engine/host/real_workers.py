"""Threads of this process for work on a worker thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.limits import THREAD_SWITCH_S

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class ThreadWorkers:
    """At most so many threads, started with the first work."""

    def __init__(self, thread_count: int) -> None:
        self._thread_count = thread_count
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` on a thread that is free, or on the first that becomes so."""
        if self._threads is None:
            # Loaded with the first segment that is rolled, not with the broker.
            from concurrent.futures import ThreadPoolExecutor

            # What computes on a worker thread lets go of the interpreter before the loop is late.
            sys.setswitchinterval(THREAD_SWITCH_S)
            self._threads = ThreadPoolExecutor(self._thread_count, f"kafka-scheduler-{name}")
        self._threads.submit(work)

    def stop(self) -> None:
        """Wait until all that was submitted has run, and end the threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None
