"""Durations of segment syncs, on the loop's thread or a worker's.

Source: LogFlushStats and LogSegment.flush of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.host.turns import no_time
from engine.timing.histogram import Histogram

_NS_PER_US: Final = 1_000


class FlushTimes:
    """The sync times of all logs of a broker; added on any thread, read on the loop's thread."""

    def __init__(self, now_ns: Callable[[], int] = no_time) -> None:
        """Start without times; `now_ns` is a clock of nanoseconds."""
        self.now_ns = now_ns
        # Durations added by other threads: `append` is atomic.
        self._noted_us: list[int] = []
        self._times = Histogram(0)

    def note(self, began_ns: int) -> None:
        """Add the duration of a segment's sync that began at `began_ns` and has just ended.

        For the metric LogFlushRateAndTimeMs.
        """
        self._noted_us.append((self.now_ns() - began_ns) // _NS_PER_US)

    def collect_times(self, now_s: int) -> Histogram:
        """Return the histogram of all sync times up to now, in microseconds."""
        noted_us = self._noted_us[:]
        # A thread may have appended more meanwhile.
        del self._noted_us[: len(noted_us)]
        self._times.note_all(noted_us, now_s)
        return self._times
