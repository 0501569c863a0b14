"""Periodic work and work on a worker thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from engine.broker.tasks import LoopTasks
from engine.errors import CorruptFile, EngineError, InvariantBroken, StorageError
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.real_workers import ThreadWorkers
from engine.log.tasks import Steps


class Stage:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.failures: list[tuple[str, EngineError]] = []
        self.tasks = LoopTasks(
            self.timers,
            self.clock,
            workers=ThreadWorkers(1),
            on_failure=lambda name, error: self.failures.append((name, error)),
            ends_early=lambda: True,
        )
        self.done: list[str] = []

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


def test_a_periodic_task_comes_first_after_its_delay_then_every_period() -> None:
    stage = Stage()
    stage.tasks.every("tick", 100, lambda: stage.done.append("tick"), first_after_ms=30)
    stage.pass_time(29)
    assert stage.done == []
    stage.pass_time(1)
    assert stage.done == ["tick"]
    stage.pass_time(100)
    stage.pass_time(99)
    assert stage.done == ["tick", "tick"]


def test_a_task_that_fails_is_reported_and_comes_again() -> None:
    stage = Stage()

    def fail() -> None:
        raise CorruptFile("a", "b", "c")

    stage.tasks.every("broken", 10, fail, first_after_ms=0)
    stage.pass_time(0)
    stage.pass_time(10)
    assert [name for name, _ in stage.failures] == ["broken", "broken"]


def test_a_periodic_task_comes_again_after_a_fault_of_our_own() -> None:
    stage = Stage()

    def fail() -> None:
        stage.done.append("tick")
        raise KeyError("gone")

    stage.tasks.every("broken", 10, fail, first_after_ms=0)
    for _ in range(2):
        with pytest.raises(KeyError):
            stage.pass_time(10)
    assert ["tick", "tick"] == stage.done


def _counting(stage: Stage, count: int) -> Callable[[], Steps]:
    def steps() -> Steps:
        for number in range(count):
            stage.done.append(str(number))
            yield

    return steps


def test_work_in_steps_lets_others_go_between_and_comes_again_behind_its_end() -> None:
    stage = Stage()
    stage.tasks.every_in_steps("count", 100, _counting(stage, 3), first_after_ms=0)

    def other() -> None:
        stage.done.append("other")
        if stage.done.count("other") < 3:
            stage.timers.call_soon(other)

    stage.timers.call_soon(other)
    stage.pass_time(0)
    assert "".join(text[0] for text in stage.done) in ("0o1o2o", "o0o1o2")
    stage.done.clear()
    stage.pass_time(99)
    assert [] == stage.done
    stage.pass_time(1)
    assert ["0", "1", "2"] == stage.done


@pytest.mark.parametrize("fault", [CorruptFile("a", "b", "c"), KeyError("gone")])
def test_work_in_steps_comes_again_after_a_step_that_fails(fault: Exception) -> None:
    stage = Stage()

    def steps() -> Steps:
        stage.done.append("begun")
        yield
        raise fault

    stage.tasks.every_in_steps("broken", 10, steps, first_after_ms=0)
    for _ in range(2):
        with nullcontext() if isinstance(fault, EngineError) else pytest.raises(KeyError):
            stage.pass_time(10)
    assert ["begun", "begun"] == stage.done
    assert 2 * isinstance(fault, EngineError) == len(stage.failures)


def test_no_step_is_taken_after_a_stop() -> None:
    stage = Stage()
    stage.tasks.run_in_steps("count", _counting(stage, 9)(), lambda: stage.done.append("end"))
    stage.tasks.stop()
    stage.pass_time(10)
    assert ["0"] == stage.done


def test_nothing_runs_after_a_stop() -> None:
    stage = Stage()
    stage.tasks.once("late", 10, lambda: stage.done.append("late"))
    stage.tasks.stop()
    stage.tasks.once("later", 10, lambda: stage.done.append("later"))
    stage.pass_time(50)
    assert stage.done == []


def test_work_on_a_worker_thread_ends_on_the_loop_with_its_error() -> None:
    stage = Stage()
    threads: list[str] = []
    outcomes: list[StorageError | None] = []

    def work() -> None:
        threads.append(threading.current_thread().name)
        raise CorruptFile("a", "b", "c")

    def done(error: StorageError | None) -> None:
        outcomes.append(error)
        threads.append(threading.current_thread().name)

    stage.tasks.offload("flush", work, done)
    while not threads:
        assert outcomes == []
    stage.tasks.stop()
    stage.timers.run_until_idle()
    (outcome,) = outcomes
    assert isinstance(outcome, CorruptFile)
    assert threads[0] != threads[1] == threading.current_thread().name


def test_a_stop_finishes_what_has_ended_on_a_thread() -> None:
    stage = Stage()
    outcomes: list[StorageError | None] = []
    stage.tasks.offload("flush", lambda: None, outcomes.append)
    stage.tasks.stop()
    assert outcomes == [None]
    stage.timers.run_until_idle()
    assert outcomes == [None]


def test_a_fault_on_a_worker_thread_is_raised_on_the_loop() -> None:
    stage = Stage()
    outcomes: list[StorageError | None] = []

    def work() -> None:
        raise InvariantBroken("an offset went back")

    stage.tasks.offload("flush", work, outcomes.append)
    with pytest.raises(InvariantBroken):
        # What has ended on a thread is finished by the stop, if the loop has not done it.
        stage.tasks.stop()
    assert outcomes == []


def test_a_broken_rule_in_a_task_goes_to_who_turns_the_loop() -> None:
    stage = Stage()

    def work() -> None:
        raise InvariantBroken("an offset went back")

    stage.tasks.once("broken", 10, work)
    with pytest.raises(InvariantBroken):
        stage.pass_time(10)
    assert stage.failures == []
