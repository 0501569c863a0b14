"""The bound of what cleaners read and write in a second."""

from __future__ import annotations

from engine.host.memory import ManualClock
from engine.log.cleaner.throttle import CleanerThrottle


def test_bytes_above_the_bound_are_paused_for() -> None:
    clock = ManualClock()
    throttle = CleanerThrottle(clock, 1000.0)
    assert 0 == throttle.count_bytes(500)
    clock.advance(300)
    assert 700 == throttle.count_bytes(500)


def test_bytes_below_the_bound_are_not() -> None:
    clock = ManualClock()
    throttle = CleanerThrottle(clock, 1000.0)
    clock.advance(2000)
    assert 0 == throttle.count_bytes(1999)
    clock.advance(299)
    assert 0 == throttle.count_bytes(100_000)


def test_a_new_bound_counts_at_once() -> None:
    clock = ManualClock()
    throttle = CleanerThrottle(clock, 1e300)
    clock.advance(300)
    assert 0 == throttle.count_bytes(1 << 40)
    throttle.bytes_per_second = 100.0
    clock.advance(300)
    assert 700 == throttle.count_bytes(100)
