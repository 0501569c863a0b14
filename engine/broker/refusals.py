"""What peers do wrong: counted, and told to the operator at a bounded rate.

A port scan or a client of another protocol breaks a connection a millisecond; each is counted by
its reason, and at most a few lines a period say so, with the number of those left out.

Source: reliability.md, hostile input.
"""

from __future__ import annotations

import logging
from collections import Counter

from engine.host.ports import Clock
from engine.limits import REFUSAL_KINDS_MAX, REFUSAL_LINES_PER_PERIOD, REFUSAL_PERIOD_MS

_log = logging.getLogger("kafka.network")


class Refusals:
    """Counts refused requests and connections by their reason."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: How often each reason was given.
        self.counts: Counter[str] = Counter()
        self._period_began_ms = clock.monotonic_ms()
        self._line_count = 0
        self._unsaid_count = 0

    def note(self, peer: str, reason: str) -> None:
        """Count one refusal, and say so if the period's lines are not used up."""
        if reason in self.counts or len(self.counts) < REFUSAL_KINDS_MAX:
            self.counts[reason] += 1
        else:
            # Reasons hold numbers that the peer chose: it must not fill the memory with them.
            self.counts["other"] += 1
        self._next_period()
        if self._line_count < REFUSAL_LINES_PER_PERIOD:
            self._line_count += 1
            _log.warning("connection of %s closed: %s", peer, reason)
        else:
            self._unsaid_count += 1

    def _next_period(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._period_began_ms < REFUSAL_PERIOD_MS:
            return
        if self._unsaid_count:
            _log.warning("%d more connections were closed for bad requests", self._unsaid_count)
        self._period_began_ms, self._line_count, self._unsaid_count = now_ms, 0, 0
