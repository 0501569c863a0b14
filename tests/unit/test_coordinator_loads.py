"""Loads of coordinators' partitions: which goes on, and what is read again."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from engine.coordinator_loads import CoordinatorLoad, CoordinatorLoads
from engine.errors import api_error
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.limits import COORDINATOR_LOAD_RETRY_MS


class Stage:
    """Loads of a topic whose partitions have three records, and fail so many times."""

    def __init__(self, failure_count: int = 0) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        turns = LoopTurns(self.timers, self.clock, lambda: True)
        self.loads = CoordinatorLoads("topic", turns, logging.getLogger("coordinator"))
        self.failures_left = failure_count

    def records_of(self, partition: int) -> Iterator[int]:
        """Yield three numbers."""
        for number in range(3):
            yield 10 * partition + number
            if self.failures_left:
                self.failures_left -= 1
                raise api_error(NOT_LEADER_OR_FOLLOWER)

    def read(self, load: CoordinatorLoad) -> Promise[list[int] | None]:
        """Begin to read, one record in each turn."""
        return drive(self.loads.read_partition(load, list[int], self.records_of, list[int].append))


def test_a_partition_is_read_in_turns() -> None:
    stage = Stage()
    load = stage.loads.begin(4, 7)
    read = stage.read(load)
    assert not read.is_kept
    assert (True, True, False) == (bool(stage.loads), 4 in stage.loads, 5 in stage.loads)
    stage.timers.run_until_idle()
    assert [40, 41, 42] == read.result()
    assert load is stage.loads.get(4)
    stage.loads.end(4)
    assert not stage.loads
    assert not stage.loads.is_current(load)


def test_a_partition_that_cannot_be_read_is_read_again_from_its_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(failure_count=2)
    read = stage.read(stage.loads.begin(4, 7))
    for _ in range(2):
        stage.timers.run_until_idle()
        assert not read.is_kept
        stage.clock.advance(COORDINATOR_LOAD_RETRY_MS)
    stage.timers.run_until_idle()
    assert [40, 41, 42] == read.result()
    assert ["partition 4 of topic is read again: "] * 2 == [m[:36] for m in caplog.messages]


@pytest.mark.parametrize("end", ["lost", "stopped", "begun again"])
def test_a_load_that_has_ended_gives_nothing(end: str) -> None:
    stage = Stage()
    read = stage.read(stage.loads.begin(4, 7))
    if end == "lost":
        stage.loads.end(4)
    elif end == "stopped":
        stage.loads.end_all()
    else:
        stage.loads.begin(4, 7)
    stage.timers.run_until_idle()
    assert None is read.result()
