"""Implementation of `kctl sim`: run seeds, print failures and how to reproduce them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from engine.host.real import RealClock
from engine.sim import campaign
from engine.sim.shrink import shrink
from engine.sim.simulation import RunResult
from kctl import exits
from kctl.console import notify
from kctl.render import TABLES, Column, check_format, write_object
from kctl.render.progress import ProgressBar
from kctl.render.rows import OutputRow

FAILURE_COLUMNS = (
    Column("seed", "SEED", right=True),
    Column("rule", "RULE"),
    Column("text", "TEXT"),
    Column("at_ms", "AT", right=True),
    Column("faults", "FAULTS", kind="string[]"),
    Column("replay", "REPLAY"),
)
SUMMARY_COLUMNS = (
    Column("seeds", "SEEDS", right=True),
    Column("failed", "FAILED", right=True),
    Column("virtual_s", "VIRTUAL-S", right=True),
    Column("acknowledged_records", "ACKNOWLEDGED", right=True),
    Column("elections", "ELECTIONS", right=True),
    Column("partitions", "PARTITIONS", right=True),
    Column("excused_partitions", "EXCUSED", right=True),
    Column("excused_records", "EXCUSED-RECORDS", right=True),
    Column("real_ms", "MS", right=True),
    Column("failures", "FAILURES", wide=True, kind="object[]", fields=FAILURE_COLUMNS),
)


class SimRequest(NamedTuple):
    """The options of `kctl sim run`."""

    first_seed: int
    seed_count: int
    minutes: float | None
    jobs: int
    seconds: float
    is_traced: bool
    is_shrunk: bool
    output: str


def run_seeds(request: SimRequest) -> int:
    """Simulate a cluster with faults for each seed, and print a summary.

    Returns the exit code: PROBLEMS_FOUND if a rule was violated. After Ctrl-C the summary is
    printed, too, and KeyboardInterrupt raised.
    """
    check_format(request.output)
    clock = RealClock()
    start_ms = clock.monotonic_ms()
    results: list[RunResult] = []
    failures: list[OutputRow] = []
    try:
        with ProgressBar("seeds") as progress:
            for result in _run_each_seed(request, clock):
                results.append(result)
                progress.update(len(results), request.seed_count)
                if result.violation is not None:
                    failures.append(_print_failure(request, result))
    finally:
        if results:
            failures.sort(key=lambda failure: int(failure["seed"]))
            _print_totals(request, results, failures, clock.monotonic_ms() - start_ms)
    return exits.PROBLEMS_FOUND if failures else exits.OK


def _run_each_seed(request: SimRequest, clock: RealClock) -> Iterator[RunResult]:
    """Simulate each seed and yield the results: in order with --trace, else in parallel."""
    seeds = range(request.first_seed, request.first_seed + request.seed_count)
    duration_ms = int(request.seconds * 1000)
    if request.is_traced:
        for seed in seeds:
            result = campaign.run_seed(seed, duration_ms=duration_ms, is_traced=True)
            for line in result.lines:
                notify(line)
            yield result
        return
    lasting_ms_max = None if request.minutes is None else int(request.minutes * 60_000)
    yield from campaign.run_seeds(
        seeds, clock, duration_ms=duration_ms, jobs=request.jobs, lasting_ms_max=lasting_ms_max
    )


def _print_failure(request: SimRequest, result: RunResult) -> dict[str, object]:
    """Print the violated rule of a seed, and the fewest faults that cause it; returns its row.

    Faults are reduced only with --shrink.
    """
    violation = result.violation
    assert violation is not None
    seed = result.plan.seed
    replay = f"kctl sim run --seed {seed} --trace"
    if request.seconds != 30.0:
        replay += f" --seconds {request.seconds:g}"
    notify(f"error: seed {seed} at {violation.at_ms / 1000:.3f} s: {violation}")
    faults = result.plan.faults
    if request.is_shrunk:
        smaller = shrink(result)
        faults = smaller.plan.faults
        notify(f"  {len(faults)} of {len(result.plan.faults)} faults are enough:")
        for fault in faults:
            notify(f"    {fault}")
    notify(f"hint: see it again with: {replay}")
    return {
        "seed": seed,
        "rule": violation.rule,
        "text": violation.text,
        "at_ms": violation.at_ms,
        "faults": [str(fault) for fault in faults],
        "replay": replay,
    }


def _print_totals(
    request: SimRequest, results: list[RunResult], failures: list[OutputRow], real_ms: int
) -> None:
    """Print the totals of all runs, and the seeds that failed; `real_ms` is the time of all."""
    row = {
        "seeds": len(results),
        "failed": len(failures),
        "virtual_s": sum(result.virtual_ms for result in results) // 1000,
        "acknowledged_records": sum(result.acknowledged_count for result in results),
        "elections": sum(result.election_count for result in results),
        "partitions": sum(result.partition_count for result in results),
        "excused_partitions": sum(result.excused_count for result in results),
        "excused_records": sum(result.excused_record_count for result in results),
        "real_ms": real_ms,
        "failures": failures,
    }
    if request.output in TABLES:
        row["failures"] = ", ".join(str(failure["seed"]) for failure in failures)
    write_object(SUMMARY_COLUMNS, row, request.output)
    sys.stdout.flush()
