"""Run the simulation for many seeds, one after the other or in several processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from engine.host.ports import Clock
from engine.host.worker_processes import WorkerProcesses
from engine.sim.plan import plan_of
from engine.sim.simulation import RunResult, run_plan


def run_seed(seed: int, *, duration_ms: int, is_traced: bool = False) -> RunResult:
    """Run the plan of one seed; only a traced one has lines."""
    return run_plan(plan_of(seed, duration_ms=duration_ms), is_traced=is_traced)


def run_seeds(
    seeds: Iterable[int], clock: Clock, *, duration_ms: int, jobs: int, lasting_ms_max: int | None
) -> Iterator[RunResult]:
    """Yield the result of each seed once it has run; start no seed after the time limit.

    `lasting_ms_max` is real time for the campaign, `duration_ms` simulated time of a run's load.
    """
    deadline_ms = None if lasting_ms_max is None else clock.monotonic_ms() + lasting_ms_max

    def in_time() -> Iterator[int]:
        """Yield the seeds until the real time of the campaign is over."""
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
