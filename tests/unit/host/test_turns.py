"""Work in shares of turns: one share a turn, one after the other."""

from __future__ import annotations

import pytest

from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.turns import Line, LoopTurns, Share
from engine.limits import SHARE_MS_MAX


class Stage:
    """Jobs of several shares, noted in the order in which they are done."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.turns = LoopTurns(self.timers, self.clock)
        self.done: list[str] = []

    async def job(self, name: str, share_count: int) -> None:
        share = self.turns.begin()
        for _ in range(share_count):
            await self.wait_if_over(share)
            self.done.append(name)
            self.clock.advance(SHARE_MS_MAX)

    @staticmethod
    async def wait_if_over(share: Share) -> None:
        if share.is_over():
            await share.next()

    def other(self) -> None:
        """Note each turn of the loop, as long as there is work."""
        if len(self.done) < 100:
            self.done.append(".")
            self.timers.call_soon(self.other)


def test_a_share_is_over_after_its_time() -> None:
    stage = Stage()
    share = stage.turns.begin()
    stage.clock.advance(SHARE_MS_MAX - 1)
    assert not share.is_over()
    stage.clock.advance(1)
    assert share.is_over()


def test_a_simulation_ends_shares_before_their_time() -> None:
    clock, answers = ManualClock(), [False, True, False]
    turns = LoopTurns(MemoryTimers(clock), clock, lambda: answers.pop(0))
    share = turns.apart().begin()
    assert [False, True, False] == [share.is_over() for _ in range(3)]


def test_jobs_have_one_share_of_each_turn_in_all() -> None:
    stage = Stage()
    jobs = [drive(stage.job(name, 3)) for name in "abc"]
    assert list("abc") == stage.done
    stage.timers.call_soon(stage.other)
    stage.timers.run_until_idle()
    assert all(job.is_kept for job in jobs)
    assert "abca.b.c.a.b.c" == "".join(stage.done).rstrip(".")


def test_work_apart_does_not_wait_for_the_others() -> None:
    stage = Stage()
    for name in "abc":
        drive(stage.job(name, 2))
    stage.turns = stage.turns.apart()
    drive(stage.job("x", 2))
    stage.timers.run_until_idle()
    assert stage.done.index("x", 4) < 6


def test_a_job_that_fails_keeps_nobody_waiting() -> None:
    stage = Stage()

    async def fails() -> None:
        share = stage.turns.begin()
        await share.next()
        raise ZeroDivisionError

    drive(fails())
    after = drive(stage.job("a", 2))
    with pytest.raises(ZeroDivisionError):
        stage.timers.run_until_idle()
    stage.timers.run_until_idle()
    assert after.is_kept


def test_a_line_is_served_in_order() -> None:
    timers = MemoryTimers(ManualClock())
    line = Line(timers)
    done: list[str] = []

    async def work(name: str) -> None:
        place = await line.enter()
        done.append(name)
        places.append(place)

    places: list[object] = []
    for name in "abc":
        drive(work(name))
    assert (["a"], True) == (done, line.is_busy)
    for _ in range(3):
        line.leave(places[-1])  # type: ignore[arg-type]
        timers.run_until_idle()
    assert (list("abc"), False) == (done, line.is_busy)


def test_what_fails_in_a_line_fails_not_in_the_leaving_of_the_one_before() -> None:
    timers = MemoryTimers(ManualClock())
    line = Line(timers)
    done: list[str] = []

    async def work(name: str) -> None:
        place = await line.enter()
        try:
            done.append(name)
            assert name != "fails"
        finally:
            line.leave(place)

    first = drive(line.enter())
    for name in ("fails", "after"):
        drive(work(name))
    line.leave(first.result())
    assert ([], True) == (done, line.is_busy)
    with pytest.raises(AssertionError):
        timers.run_until_idle()
    timers.run_until_idle()
    assert (["fails", "after"], False) == (done, line.is_busy)


def test_a_pause_ends_after_its_time() -> None:
    stage = Stage()
    over = stage.turns.pause(100)
    stage.clock.advance(99)
    stage.timers.run_until_idle()
    assert not over.is_kept
    stage.clock.advance(1)
    stage.timers.run_until_idle()
    assert over.is_kept
