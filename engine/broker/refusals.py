"""Count and log invalid requests and refused connections, with a limited number of log lines.

A port scan or a client of another protocol may cause an error each millisecond. All are counted by
their reason; a few lines per period are logged, with the number of omitted lines.

| event | level, as in Kafka |
|---|---|
| a connection is closed because of an invalid request | WARN |
| a new connection is refused or delayed: limits, descriptors | INFO |

Source: reliability.md, hostile input.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from engine.host.ports import Clock
from engine.limits import REFUSAL_KINDS_MAX, REFUSAL_LINES_PER_PERIOD, REFUSAL_PERIOD_MS

_log = logging.getLogger("kafka.network.Processor")
_acceptor_log = logging.getLogger("kafka.network.DataPlaneAcceptor")


class _Lines:
    """Writes a limited number of log lines per period."""

    def __init__(self, clock: Clock, log: Callable[..., None], left_out: str) -> None:
        """Create a bound on log lines per period; `log` writes a line.

        `left_out` is the line with the number of lines that were omitted.
        """
        self._clock = clock
        self._log = log
        self._left_out = left_out
        self._period_began_ms = clock.monotonic_ms()
        #: Lines of the present period that were written, and that were omitted.
        self._line_count = 0
        self._dropped_count = 0

    def log(self, text: str, *values: object) -> None:
        """Log a line, or count it as omitted if the period has used up its lines."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._period_began_ms >= REFUSAL_PERIOD_MS:
            if self._dropped_count:
                self._log(self._left_out, self._dropped_count)
            self._period_began_ms, self._line_count, self._dropped_count = now_ms, 0, 0
        if self._line_count < REFUSAL_LINES_PER_PERIOD:
            self._line_count += 1
            self._log(text, *values)
        else:
            self._dropped_count += 1


class Refusals:
    """Counts refused requests and connections of one broker by their reason."""

    def __init__(self, clock: Clock) -> None:
        """Create the counts of refused connections, all 0."""
        #: Number of events by reason.
        self.counts: Counter[str] = Counter()
        #: Log lines for closed connections.
        self._cut = _Lines(clock, _log.warning, "%d more connections were closed for bad requests")
        #: Log lines for rejected and delayed connections, by the first word of the reason, each
        #: with its own limit.
        self._kept_out: dict[str, _Lines] = {}
        self._clock = clock

    def note(self, peer: str, reason: str) -> None:
        """Count and log a client connection that the broker closes, with the reason."""
        self._count_reason(reason)
        self._cut.log("connection of %s closed: %s", peer, reason)

    def note_rejection(self, peer: str, reason: str) -> None:
        """Count and log a new connection that is rejected or delayed; `reason` begins with it."""
        self._count_reason(reason)
        kind = reason.partition(" ")[0]
        lines = self._kept_out.get(kind)
        if lines is None:
            left_out = "%d more connections were rejected or had to wait"
            lines = self._kept_out[kind] = _Lines(self._clock, _acceptor_log.info, left_out)
        lines.log("connection of %s: %s", peer, reason)

    def _count_reason(self, reason: str) -> None:
        """Count a reason for the metrics.

        Above REFUSAL_KINDS_MAX reasons, new ones count as "other".
        """
        if reason in self.counts or len(self.counts) < REFUSAL_KINDS_MAX:
            self.counts[reason] += 1
        else:
            # Reasons contain numbers from the peer, which must not fill the memory.
            self.counts["other"] += 1
