"""Simulation runs of many seeds, sequentially or in several processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from engine.host.ports import Clock
from engine.host.worker_processes import WorkerProcesses
from engine.sim.plan import plan_of
from engine.sim.simulation import RunResult, run_plan


def run_seed(seed: int, *, duration_ms: int, is_traced: bool = False) -> RunResult:
    """Run the simulation that a seed determines; return its result.

    The result has trace lines only if `is_traced`.
    """
    return run_plan(plan_of(seed, duration_ms=duration_ms), is_traced=is_traced)


def run_seeds(
    seeds: Iterable[int], clock: Clock, *, duration_ms: int, jobs: int, lasting_ms_max: int | None
) -> Iterator[RunResult]:
    """Yield the result of each seed's run, from several processes; start none after the time limit.

    `lasting_ms_max` is the real time limit of all runs, `duration_ms` the simulated duration of a
    run's load.
    """
    deadline_ms = None if lasting_ms_max is None else clock.monotonic_ms() + lasting_ms_max

    def in_time() -> Iterator[int]:
        """Yield the seeds until the time limit is reached."""
        for seed in seeds:
            if deadline_ms is not None and clock.monotonic_ms() >= deadline_ms:
                return
            yield seed

    run = partial(run_seed, duration_ms=duration_ms)
    if jobs == 1:
        yield from map(run, in_time())
    else:
        with WorkerProcesses(run, jobs) as workers:
            yield from workers.run(in_time())
