"""One timer for many deadlines."""

from __future__ import annotations

import pytest

from engine.broker.deadlines import Deadlines
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers


class Stage:
    """Operations with deadlines that are answered once these are past."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.waiting: list[int] = []
        self.answered: list[int] = []
        self.advances = 0
        self.deadlines = Deadlines(self.timers)
        self.deadlines.add(self)

    def advance(self) -> None:
        self.advances += 1
        now_ms = self.clock.monotonic_ms()
        self.answered += [due for due in self.waiting if due <= now_ms]
        self.waiting = [due for due in self.waiting if due > now_ms]

    def next_deadline_ms(self) -> int | None:
        return min(self.waiting, default=None)

    def wait_until(self, due_ms: int) -> None:
        self.waiting.append(due_ms)
        self.deadlines.note(due_ms)

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


def test_the_earliest_deadline_counts_in_any_order() -> None:
    stage = Stage()
    start = stage.clock.monotonic_ms()
    for due in (300, 100, 200):
        stage.wait_until(start + due)
    stage.pass_time(100)
    assert stage.answered == [start + 100]
    stage.pass_time(200)
    assert sorted(stage.answered) == [start + 100, start + 200, start + 300]


def test_without_deadlines_nothing_runs() -> None:
    stage = Stage()
    stage.wait_until(stage.clock.monotonic_ms() + 10)
    stage.pass_time(10)
    stage.pass_time(10_000)
    assert stage.advances == 1


def test_a_later_deadline_does_not_move_the_timer() -> None:
    stage = Stage()
    start = stage.clock.monotonic_ms()
    stage.wait_until(start + 10)
    stage.wait_until(start + 500)
    stage.pass_time(10)
    assert stage.answered == [start + 10]
    stage.pass_time(490)
    assert stage.answered == [start + 10, start + 500]


def test_a_stop_cancels_the_timer() -> None:
    stage = Stage()
    stage.wait_until(stage.clock.monotonic_ms() + 10)
    stage.deadlines.stop()
    stage.pass_time(10)
    assert stage.advances == 0


def test_a_fault_of_one_owner_is_not_that_of_the_others() -> None:
    stage = Stage()
    advanced: list[int] = []

    class Faulty:
        def advance(self) -> None:
            advanced.append(stage.advances)
            raise KeyError("a fault of our own")

        def next_deadline_ms(self) -> int | None:
            return None

    stage.deadlines.add(Faulty())
    stage.deadlines.add(Faulty())
    stage.wait_until(10)
    with pytest.raises(KeyError):
        stage.pass_time(10)
    assert 2 == len(advanced)


def test_a_fault_of_one_owner_leaves_the_next_deadlines_in_their_place() -> None:
    stage = Stage()

    class Faulty:
        def advance(self) -> None:
            raise KeyError("a fault of our own")

        def next_deadline_ms(self) -> int | None:
            return None

    stage.deadlines.add(Faulty())
    stage.wait_until(10)
    stage.wait_until(20)
    for due_ms in (10, 20):
        with pytest.raises(KeyError):
            stage.pass_time(10)
        assert due_ms == stage.answered[-1]
