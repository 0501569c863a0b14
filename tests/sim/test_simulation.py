"""The simulation itself: the same seed is the same run, and what is broken is seen."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.log.cleaner import log_messages
from engine.replication.replica_manager import ReplicaManager
from engine.sim.fault_kinds import FaultKind
from engine.sim.invariants import Violation
from engine.sim.plan import Fault, Plan, plan_of
from engine.sim.shrink import shrink
from engine.sim.simulation import RunResult, postpone_collection, run_plan
from tests.sim.mutants import (
    MUTANTS,
    BrokenMutant,
    Mutant,
    find_failing_seed,
    first_failing_seed,
)

_PRINT = """
from engine.sim.plan import plan_of
from engine.sim.simulation import run_plan
print("\\n".join(run_plan(plan_of({seed}), is_traced=True).lines))
"""


def _trace_in_a_process(seed: int, hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", _PRINT.format(seed=seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
def test_a_seed_is_the_same_run_in_every_process() -> None:
    first = _trace_in_a_process(7, "1")
    assert first == _trace_in_a_process(7, "2")
    assert "the cluster stands" in first


def test_a_trace_changes_nothing() -> None:
    plain, traced = run_plan(plan_of(3)), run_plan(plan_of(3), is_traced=True)
    assert plain._replace(lines=[]) == traced._replace(lines=[])
    assert [] == plain.lines


def test_what_a_run_leaves_logs_nothing_as_it_is_collected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended: list[str] = []

    def process() -> Iterator[None]:
        try:
            yield
        finally:
            ended.append("process")
            logging.getLogger("engine").error("the disk is gone")

    with postpone_collection():
        started = process()
        next(started)
        left: list[object] = [started]
        left.append(left)
        del started, left
    assert ended == ["process"]
    assert caplog.records == []
    logging.getLogger("engine").error("told again")
    assert [record.message for record in caplog.records] == ["told again"]


def test_what_is_made_as_a_run_is_collected_is_collected_with_it() -> None:
    class Process:
        """What its generator holds, and what it holds in its turn."""

        def __init__(self) -> None:
            self.held: list[object] = [self._run()]
            next(cast(Iterator[None], self.held[0]))

        def _run(self) -> Iterator[None]:
            try:
                yield
            finally:
                self.held.append([self])

    with postpone_collection():
        Process()
    # By type: `isinstance` asks a weak proxy of another test for an object that is gone.
    assert [None for held in gc.get_objects() if type(held) is Process] == []


def test_what_was_frozen_before_a_run_stays_frozen() -> None:
    before: list[object] = []
    gc.collect()
    gc.freeze()
    with postpone_collection():
        pass
    assert not [None for each in gc.get_objects() if each is before]


def test_what_is_frozen_for_a_run_alone_is_collected_later(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfreeze"))
    with postpone_collection():
        assert calls == ["freeze"]
    assert calls == ["freeze", "unfreeze"]


def test_seeds_that_compact_clean_their_logs_and_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleaned: list[object] = []
    monkeypatch.setattr(log_messages, "log_end", lambda key, *_: cleaned.append(key))
    seed = next(seed for seed in range(100) if plan_of(seed).is_compacted)
    result = run_plan(plan_of(seed, duration_ms=8_000))
    assert result.violation is None
    assert result.acknowledged_count
    assert cleaned


def test_a_plan_is_drawn_before_anything_runs() -> None:
    assert plan_of(5) == plan_of(5)
    assert plan_of(5) != plan_of(6)
    kinds = {fault.kind for seed in range(500) for fault in plan_of(seed).faults}
    assert set(FaultKind) == kinds


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["the_leader_commits_alone", "acknowledged_when_appended", "any_follower_commits"]
)
def test_a_planted_fault_is_found_at_once(name: str) -> None:
    assert first_failing_seed(name, 5).seed is not None


def test_a_fault_that_raises_an_exception_of_its_own_is_not_found() -> None:
    def misnamed(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(ReplicaManager, "advance", lambda self: self.no_such_name)

    with pytest.raises(BrokenMutant, match=r"misnamed: BUG.*no_such_name"):
        find_failing_seed(Mutant(misnamed, "", ""), range(3))


@pytest.mark.slow
def test_a_directory_that_fails_is_offline_alone_and_comes_back() -> None:
    plan = plan_of(1)._replace(
        log_dir_count=2,
        topics=(3,),
        is_unclean_allowed=False,
        faults=tuple(
            Fault(4_000 + 5_000 * number, FaultKind.DIRECTORY_FAILED, str(number + 1), 3_000, other)
            for number, other in enumerate((0, 1, 0))
        ),
    )
    result = run_plan(plan, is_traced=True)
    assert result.violation is None
    lines = "\n".join(result.lines)
    assert "Stopping serving replicas in dir /data" in lines
    assert "Stopping serving replicas in dir /more" in lines
    assert "gives up" not in lines
    assert result.election_count > 3


@pytest.mark.slow
def test_a_machine_whose_threads_are_heard_late_loses_nothing() -> None:
    late = Fault(1_000, FaultKind.LATE_WORK, "leader", 8_000)
    plan = plan_of(2)._replace(faults=(late, late._replace(at_ms=12_000, whom="follower")))
    result = run_plan(plan)
    assert result.violation is None
    assert result.acknowledged_count > 0


def test_every_planted_fault_has_a_name_and_a_reason() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 15
    assert all(mutant.plant.__doc__ for mutant in MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_planted_fault_finds_its_place(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.plant(monkeypatch)


@dataclass
class Pretended:
    """Runs that fail while two faults are both there."""

    needed: tuple[int, int]
    runs: list[Plan] = field(default_factory=list)

    def __call__(self, plan: Plan) -> RunResult:
        self.runs.append(plan)
        times = {fault.at_ms for fault in plan.faults}
        violation = Violation("R2", "lost", 9) if set(self.needed) <= times else None
        return RunResult(plan, violation, 0, 0, 0, 0, 0, 0, 0, [])


@pytest.mark.parametrize("needed", [(0, 39), (7, 8), (20, 20)])
def test_faults_that_a_failure_does_not_need_are_left_out(needed: tuple[int, int]) -> None:
    faults = tuple(Fault(number, FaultKind.KILL, "1", 0) for number in range(40))
    run = Pretended(needed)
    smallest = shrink(run(plan_of(1)._replace(faults=faults)), run=run)
    assert sorted(set(needed)) == [fault.at_ms for fault in smallest.plan.faults]
    assert len(run.runs) < 100


def test_shrinking_ends_after_so_many_runs() -> None:
    faults = tuple(Fault(number, FaultKind.KILL, "1", 0) for number in range(40))
    run = Pretended((0, 39))
    shrink(run(plan_of(1)._replace(faults=faults)), runs_max=3, run=run)
    assert 4 == len(run.runs)
