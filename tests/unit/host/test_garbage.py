"""Collections of garbage that look at what is new, and seldom at all."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

from engine.host.garbage import Garbage
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.limits import FROZEN_OBJECTS_MAX, FULL_COLLECTION_AFTER, WHOLE_COLLECTION_MS

Phase: TypeAlias = Literal["start", "stop"]


class NotedCollector:
    """Notes what it is asked for; a full collection calls back as Python's does."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Phase, dict[str, int]], object]] = []
        self.noted: list[str] = []
        self.frozen_count = 1000
        self.survivor_count = 0
        self.walk_count = 0
        self.thresholds = (2000, 10, 10)

    def get_threshold(self) -> tuple[int, int, int]:
        return self.thresholds

    def set_threshold(self, objects: int, young: int, middle: int, /) -> None:
        self.thresholds = (objects, young, middle)

    def enable(self) -> None:
        self.noted.append("enable")

    def freeze(self) -> None:
        self.noted.append("freeze")

    def get_freeze_count(self) -> int:
        self.walk_count += 1
        return self.frozen_count

    def get_objects(self, generation: int) -> list[None]:
        assert generation == 2
        return [None] * self.survivor_count

    def survive(self, count: int) -> None:
        """Make a full collection that so many objects survive, which are frozen then."""
        self.survivor_count = count
        self.frozen_count += count
        self.run(2)
        self.survivor_count = 0

    def unfreeze(self) -> None:
        self.noted.append("unfreeze")

    def collect(self) -> int:
        self.noted.append("collect")
        self.run(2)
        return 0

    def run(self, generation: int) -> None:
        for phase in get_args(Phase):
            for callback in self.callbacks:
                callback(phase, {"generation": generation})

    def taken(self) -> list[str]:
        noted, self.noted = self.noted, []
        return noted


class Stage:
    """A process that has begun to serve."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.collector = NotedCollector()
        self.garbage = Garbage(self.collector, self.timers, self.clock)
        self.garbage.start()

    def pass_ms(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


def test_what_was_loaded_is_frozen_without_a_check() -> None:
    stage = Stage()
    assert ["freeze", "enable"] == stage.collector.taken()


def test_full_collections_come_before_there_is_much_to_look_at() -> None:
    stage = Stage()
    assert (2000, 10, FULL_COLLECTION_AFTER) == stage.collector.thresholds
    stage.garbage.stop()
    assert ((2000, 10, 10), []) == (stage.collector.thresholds, stage.collector.callbacks)


def test_what_survives_a_full_collection_is_checked_no_more() -> None:
    stage = Stage()
    stage.collector.taken()
    for generation in (0, 1):
        stage.collector.run(generation)
    assert [] == stage.collector.taken()
    stage.collector.run(2)
    assert ["freeze"] == stage.collector.taken()


def test_all_is_checked_once_an_hour_where_something_was_frozen() -> None:
    stage = Stage()
    stage.collector.run(2)
    stage.collector.taken()
    stage.pass_ms(WHOLE_COLLECTION_MS - 1)
    assert [] == stage.collector.taken()
    stage.pass_ms(1)
    assert ["unfreeze", "collect", "freeze"] == stage.collector.taken()
    stage.pass_ms(WHOLE_COLLECTION_MS)
    assert [] == stage.collector.taken()
    stage.collector.run(2)
    stage.pass_ms(WHOLE_COLLECTION_MS)
    assert ["freeze", "unfreeze", "collect", "freeze"] == stage.collector.taken()


def test_what_is_frozen_is_not_walked_at_each_collection() -> None:
    stage = Stage()
    walked = stage.collector.walk_count
    for _ in range(10):
        stage.collector.survive(FROZEN_OBJECTS_MAX // 10)
        stage.timers.run_until_idle()
    assert walked == stage.collector.walk_count


def test_what_was_freed_since_it_was_frozen_leads_to_no_look() -> None:
    stage = Stage()
    stage.collector.survive(1000 + FROZEN_OBJECTS_MAX)
    stage.collector.taken()
    stage.collector.frozen_count = 1000
    for _ in range(2):
        stage.collector.survive(1)
        stage.timers.run_until_idle()
    assert ["freeze", "freeze"] == stage.collector.taken()
    stage.collector.survive(1000 + FROZEN_OBJECTS_MAX)
    stage.timers.run_until_idle()
    assert "unfreeze" in stage.collector.taken()


def test_all_is_checked_when_what_is_frozen_has_doubled() -> None:
    stage = Stage()
    stage.collector.survive(1000 + FROZEN_OBJECTS_MAX)
    stage.timers.run_until_idle()
    stage.collector.taken()
    stage.collector.survive(1)
    stage.collector.run(2)
    # Not in the middle of the collection, and once.
    assert ["freeze", "freeze"] == stage.collector.taken()
    stage.timers.run_until_idle()
    assert ["unfreeze", "collect", "freeze"] == stage.collector.taken()
    # What is left of it is what the next one is measured by.
    stage.collector.frozen_count = 2 * stage.collector.frozen_count + FROZEN_OBJECTS_MAX
    stage.collector.run(2)
    stage.timers.run_until_idle()
    assert ["freeze"] == stage.collector.taken()


def test_the_hourly_look_is_no_reason_for_another_one() -> None:
    stage = Stage()
    stage.collector.run(2)
    stage.collector.taken()
    # What came since lies among the survivors of the look itself.
    stage.collector.frozen_count = 10 * FROZEN_OBJECTS_MAX
    stage.pass_ms(WHOLE_COLLECTION_MS)
    assert ["unfreeze", "collect", "freeze"] == stage.collector.taken()


def test_nothing_is_checked_after_the_end() -> None:
    stage = Stage()
    stage.collector.run(2)
    stage.collector.frozen_count = 10 * FROZEN_OBJECTS_MAX
    stage.collector.run(2)
    stage.garbage.stop()
    stage.collector.taken()
    stage.pass_ms(WHOLE_COLLECTION_MS)
    assert [] == stage.collector.taken()


def test_python_lets_survivors_be_frozen_as_its_collection_ends() -> None:
    clock = ManualClock()
    garbage = Garbage(gc, MemoryTimers(clock), clock)
    was_on = gc.isenabled()
    garbage.start()
    try:
        kept: list[list[object]] = [[] for _ in range(1000)]
        gc.collect()
        assert not set(map(id, kept)) & set(map(id, gc.get_objects()))
        alone: list[object] = []
        alone.append(alone)
        assert 1 == len([each for each in gc.get_objects() if each is alone])
        del alone
        assert gc.collect() >= 1
    finally:
        # What was frozen before the first test stays so: see `tests/conftest.py`.
        garbage.stop()
        if not was_on:
            gc.disable()
