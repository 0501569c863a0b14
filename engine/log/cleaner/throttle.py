"""Limit the cleaners' reads and writes to log.cleaner.io.max.bytes.per.second.

Source: Kafka's Throttler.
"""

from __future__ import annotations

from threading import Lock

from engine.host.ports import Clock
from engine.limits import CLEANER_THROTTLE_CHECK_MS


class CleanerThrottle:
    """Counts the bytes of all cleanings of a broker in the current period."""

    def __init__(self, clock: Clock, bytes_per_second: float) -> None:
        """Start with no bytes; `bytes_per_second` may be changed at any time."""
        self.bytes_per_second = bytes_per_second
        self._clock = clock
        #: Guards the counters below: cleanings run on several threads.
        self._lock = Lock()
        #: Bytes of the current period, and its start (monotonic clock).
        self._seen_bytes = 0
        self._since_ms = clock.monotonic_ms()

    def count_bytes(self, count_bytes: int) -> int:
        """Count bytes read or written; return the ms that the cleaning must pause, 0 for no pause.

        The cleaner threads share one throttle for `log.cleaner.io.max.bytes.per.second`. The pause
        is computed once per CLEANER_THROTTLE_CHECK_MS.
        """
        with self._lock:
            self._seen_bytes += count_bytes
            now_ms = self._clock.monotonic_ms()
            elapsed_ms = now_ms - self._since_ms
            if elapsed_ms < CLEANER_THROTTLE_CHECK_MS or not self._seen_bytes:
                return 0
            allowed_ms = self._seen_bytes * 1000 / self.bytes_per_second
            self._since_ms, self._seen_bytes = now_ms, 0
            return max(round(allowed_ms - elapsed_ms), 0)
