"""TLS handshakes, for at most TURN_MS_MAX in each turn of the loop.

A handshake signs: half a millisecond or more. After a restart thousands of clients begin theirs at
the same moment; clients that are connected already get a turn after every TURN_MS_MAX of them.

Differs: Kafka's network threads do as many as have bytes to be read; clients of the same
thread wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from engine.host.ports import Clock, Timers
from engine.limits import TURN_MS_MAX


class HandshakeTurns:
    """Continues handshakes in order of arrival."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        """Create without handshakes."""
        self._timers = timers
        self._clock = clock
        #: Functions that continue a handshake each, in order of arrival.
        self._waiting: deque[Callable[[], None]] = deque()
        #: Whether a turn for them is scheduled.
        self._is_due = False

    def queue(self, shake: Callable[[], None]) -> None:
        """Queue `shake`, which is called on a later turn, after the handshakes queued before."""
        self._waiting.append(shake)
        self._schedule_turn()

    def _schedule_turn(self) -> None:
        """Schedule `_run_turn` for the next turn, unless that is done already."""
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        """Run queued handshakes for TURN_MS_MAX; schedule another turn if some are left."""
        self._is_due = False
        over_ms = self._clock.monotonic_ms() + TURN_MS_MAX
        while self._waiting:
            shake = self._waiting.popleft()
            if self._waiting:
                # Scheduled before the work, which may raise.
                self._schedule_turn()
            shake()
            if self._clock.monotonic_ms() >= over_ms:
                return
