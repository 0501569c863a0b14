"""Handshakes do not keep connected clients waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.host.handshake_turns import HandshakeTurns
from engine.host.memory import ManualClock
from engine.limits import TURN_MS_MAX


class _Turns:
    """A loop of which each turn is run by hand."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back on the next turn."""
        self.due.append(callback)

    def call_at(self, _monotonic_ms: int, _callback: Callable[[], None]) -> Callable[[], None]:
        """Refuse: nothing here waits for a time."""
        raise AssertionError

    def turn(self) -> None:
        """Run what is due now."""
        due, self.due = self.due, []
        for callback in due:
            callback()


def test_a_turn_has_as_many_handshakes_as_its_time_allows_in_order() -> None:
    loop, clock, done = _Turns(), ManualClock(), list[int]()
    handshakes = HandshakeTurns(loop, clock)

    def shake(number: int) -> Callable[[], None]:
        def run() -> None:
            done.append(number)
            clock.advance(TURN_MS_MAX - 1)

        return run

    for number in range(5):
        handshakes.queue(shake(number))
    counts = []
    while loop.due:
        loop.turn()
        counts.append(len(done))
    assert [2, 4, 5] == counts
    assert [0, 1, 2, 3, 4] == done
    # One that comes later is no worse off.
    handshakes.queue(shake(5))
    loop.turn()
    assert [5] == done[5:]


def test_a_fault_in_one_handshake_leaves_the_others() -> None:
    loop, done = _Turns(), list[str]()
    handshakes = HandshakeTurns(loop, ManualClock())

    def fail() -> None:
        raise AssertionError("a fault")

    handshakes.queue(fail)
    handshakes.queue(lambda: done.append("next"))
    with pytest.raises(AssertionError, match="a fault"):
        loop.turn()
    loop.turn()
    assert ["next"] == done
