"""Faults of peers, and refused connections: counted, and logged at a bounded rate.

A port scan or a client of another protocol breaks a connection a millisecond, and one that leaks
connections is refused as often; each is counted by its reason, and at most a few lines a period
log it, with the number of those left out.

| event | level, as in Kafka |
|---|---|
| a connection is closed for a fault of its peer | WARN |
| an arrival is refused or has to wait: settings, descriptors | INFO |

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
    """A bounded number of lines a period."""

    def __init__(self, clock: Clock, log: Callable[..., None], left_out: str) -> None:
        """Write with `log`.

        `left_out` is the line for the number of lines that were not written.
        """
        self._clock = clock
        self._log = log
        self._left_out = left_out
        self._period_began_ms = clock.monotonic_ms()
        #: Lines of the present period that were written, and those that were left out.
        self._line_count = 0
        self._dropped_count = 0

    def log(self, text: str, *values: object) -> None:
        """Log a line unless the present period has used up its lines; dropped lines are counted."""
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
        """Count from 0."""
        #: How often each reason was given.
        self.counts: Counter[str] = Counter()
        #: Log lines for connections that were closed, with a limit per time.
        self._cut = _Lines(clock, _log.warning, "%d more connections were closed for bad requests")
        #: Log lines for connections that were rejected or delayed, by the first word of the reason.
        #: Each has a limit of its own, so that a flood of one kind does not hide the others.
        self._kept_out: dict[str, _Lines] = {}
        self._clock = clock

    def note(self, peer: str, reason: str) -> None:
        """Count a connection that is closed."""
        self._count_reason(reason)
        self._cut.log("connection of %s closed: %s", peer, reason)

    def keep_out(self, peer: str, reason: str) -> None:
        """Count an arrival that is turned away or has to wait."""
        self._count_reason(reason)
        kind = reason.partition(" ")[0]
        lines = self._kept_out.get(kind)
        if lines is None:
            left_out = "%d more connections were rejected or had to wait"
            lines = self._kept_out[kind] = _Lines(self._clock, _acceptor_log.info, left_out)
        lines.log("connection of %s: %s", peer, reason)

    def _count_reason(self, reason: str) -> None:
        """Count a reason; those beyond REFUSAL_KINDS_MAX are counted together."""
        if reason in self.counts or len(self.counts) < REFUSAL_KINDS_MAX:
            self.counts[reason] += 1
        else:
            # Reasons hold numbers that the peer chose: it must not fill the memory with them.
            self.counts["other"] += 1
