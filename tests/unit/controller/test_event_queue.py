"""The order of events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.controller.event_queue import Event, EventQueue
from engine.controller.event_times import EventTimes
from engine.errors import EngineError
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise


class Bench:
    """A queue that notes what runs."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.notes: list[str] = []
        self.times = EventTimes(self.clock, lambda: self.clock.monotonic_ms() * 1_000_000)
        self.queue = EventQueue(self.timers.call_soon, self._on_failed, self.times)

    async def _on_failed(self, name: str, error: EngineError) -> None:
        self.notes.append(f"{name} failed: {error}")

    def event(self, name: str, waits_for: Promise[None] | None = None) -> Event:
        async def work() -> None:
            self.notes.append(f"{name} begins")
            if waits_for is not None:
                await waits_for
            self.notes.append(f"{name} ends")

        return Event(name, work, lambda: self.notes.append(f"{name} dropped"))

    def take(self) -> list[str]:
        self.timers.run_until_idle()
        taken, self.notes = self.notes, []
        return taken


def test_nothing_runs_inside_put() -> None:
    bench = Bench()
    bench.queue.put(bench.event("a"))
    assert [] == bench.notes
    assert not bench.queue.is_idle
    assert ["a begins", "a ends"] == bench.take()
    assert bench.queue.is_idle


def test_an_event_that_waits_holds_up_the_next() -> None:
    bench = Bench()
    promise: Promise[None] = Promise()
    bench.queue.put(bench.event("a", promise))
    bench.queue.put(bench.event("b"))
    assert ["a begins"] == bench.take()
    promise.keep(None)
    assert ["a ends", "b begins", "b ends"] == bench.take()


def test_a_failure_is_reported_and_the_next_event_runs() -> None:
    bench = Bench()
    promise: Promise[None] = Promise()
    bench.queue.put(bench.event("a", promise))
    bench.queue.put(bench.event("b"))
    bench.take()
    promise.fail(EngineError("no"))
    assert ["a failed: no", "b begins", "b ends"] == bench.take()


def test_a_fault_of_the_code_surfaces_and_the_next_event_runs() -> None:
    bench = Bench()

    async def fault() -> None:
        raise ZeroDivisionError

    bench.queue.put(Event("a", fault))
    bench.queue.put(bench.event("b"))
    with pytest.raises(ZeroDivisionError):
        bench.timers.run_until_idle()
    assert ["b begins", "b ends"] == bench.take()


def test_one_event_overtakes_all_that_wait() -> None:
    bench = Bench()
    promise: Promise[None] = Promise()
    bench.queue.put(bench.event("a", promise))
    bench.queue.put(bench.event("b"))
    bench.take()
    bench.queue.clear_and_put(bench.event("c"))
    assert ["b dropped"] == bench.take()
    promise.keep(None)
    assert ["a ends", "c begins", "c ends"] == bench.take()


def test_a_closed_queue_drops_everything() -> None:
    bench = Bench()
    bench.queue.put(bench.event("a"))
    silent: Callable[[], None] | None = None
    bench.queue.put(Event("quiet", bench.event("quiet").work, silent))
    bench.queue.close(lambda: bench.notes.append("idle"))
    bench.queue.put(bench.event("b"))
    assert ["a dropped", "idle", "b dropped"] == bench.take()


def test_a_queue_is_closed_when_what_runs_has_ended() -> None:
    bench = Bench()
    promise: Promise[None] = Promise()
    bench.queue.put(bench.event("a", promise))
    bench.take()
    bench.queue.close(lambda: bench.notes.append("idle"))
    assert [] == bench.take()
    promise.keep(None)
    assert ["a ends", "idle"] == bench.take()


def test_waits_and_times_of_events_are_noted() -> None:
    bench = Bench()
    bench.clock.advance(1_000)
    first: Promise[None] = Promise()
    bench.queue.put(bench.event("TopicChange", first))
    bench.queue.put(bench.event("BrokerChange(1)"))
    bench.take()
    bench.clock.advance(30)
    first.keep(None)
    bench.take()
    # In milliseconds, and in microseconds.
    assert (2, 0, 30) == bench.times.waits.reading()[:3]
    timers = bench.times.timers
    assert (1, 30_000, 30_000) == timers["TopicChangeRateAndTimeMs"].reading()[:3]
    assert (1, 0, 0) == timers["LeaderElectionRateAndTimeMs"].reading()[:3]
