"""`kctl sim`: the whole embedded cluster on virtual time, with faults by seed."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import Output, noun

app = noun("Simulate a whole cluster with faults, and check that nothing is lost.")


@app.callback()
def sim() -> None:
    """Simulate a whole cluster with faults, and check that nothing is lost."""


@app.command("run", epilog="Example: kctl sim run --seeds 300 --jobs 2")
def run_(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="How many seeds to run.")
    ] = 1,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="The first seed, or the only one.")
    ] = 0,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", min=0.001, metavar="M", help="Begin no seed after this time."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, metavar="J", help="How many processes run seeds.")
    ] = 1,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", min=1, metavar="S", help="How long faults come in each run, virtual time."
        ),
    ] = 30.0,
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Print the events of each run on stderr, with their time."),
    ] = False,
    shrink: Annotated[
        bool,
        typer.Option("--shrink/--no-shrink", help="Leave out faults that a failure does not need."),
    ] = True,
    output: Output = "table",
) -> int:
    """Run a cluster on virtual time, once for each seed, and check every rule after every event.

    Three or four real brokers, their metadata store, producers and consumers, on a network, disks
    and clocks that fail by the seed. The same seed is the same run.
    Exit code 4 if a rule was broken in any run.
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
