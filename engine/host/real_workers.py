"""Worker threads of this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.limits import THREAD_SWITCH_S

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class ThreadWorkers:
    """A pool of at most `thread_count` threads, started with the first work."""

    def __init__(self, thread_count: int) -> None:
        self._thread_count = thread_count
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Queue `work` for the next free thread; the first call starts the pool."""
        if self._threads is None:
            # Imported when the first segment is rolled, not at the broker's start.
            from concurrent.futures import ThreadPoolExecutor

            # Shorter slices: computation on a worker thread must not delay the loop.
            sys.setswitchinterval(THREAD_SWITCH_S)
            self._threads = ThreadPoolExecutor(self._thread_count, f"kafka-scheduler-{name}")
        self._threads.submit(work)

    def stop(self) -> None:
        """Wait until all submitted work has run, and end the threads."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None
