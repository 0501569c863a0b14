"""`kctl sim`: simulate the embedded cluster in virtual time, with faults chosen by a seed."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Simulate a whole cluster with faults, and check that nothing is lost.")


@app.callback()
def sim() -> None:
    """Simulate a complete cluster with faults, and check that no records are lost."""


@app.command("run", epilog="Example: kctl sim run --seeds 300 --jobs 2")
def run_(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Number of seeds to run.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="S", help="First seed.")] = 0,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", min=0.001, metavar="M", help="Start no seed after this time."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, metavar="J", help="Number of parallel processes.")
    ] = 1,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=1, metavar="S", help="Virtual time with faults in each run."),
    ] = 30.0,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Print the events of each run with times on stderr."),
    ] = False,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink/--no-shrink",
            help="Whether to reduce the faults of a failed run to the necessary ones.",
        ),
    ] = True,
    output: Output = "table",
) -> int:
    """Simulate a cluster in virtual time once per seed, and check all invariants after every event.

    Runs three or four real brokers, their metadata store, producers and consumers, with faults of
    network, disks and clocks chosen by the seed. The same seed gives the same run.

    Exit code 4 if a run violates an invariant.
    """
    from kctl.commands.sim.seeds import SimRequest, run_seeds

    request = SimRequest(
        first_seed=seed,
        seed_count=seeds,
        minutes=minutes,
        jobs=jobs,
        seconds=seconds,
        is_traced=trace,
        is_shrunk=shrink,
        output=output,
    )
    return run_seeds(request)
