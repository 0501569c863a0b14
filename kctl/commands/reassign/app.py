"""`kctl reassign`: plan, execute, watch and cancel moves of replicas."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions
from kctl.options.cluster import TIMEOUT_S, Output, Timeout, Yes, noun, on_cluster
from kctl.options.moves import (
    IgnoreFreeSpace,
    MoveOptions,
    MovesPerBroker,
    NoElection,
    PlanOnly,
    Throttle,
)
from kctl.options.rates import RateWindow

app = noun("Moves of replicas: plan, execute, watch, cancel, roll back.")

_Topics = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOPIC]...", help="Topics that may change; default: all."),
]
_PlanFile = Annotated[
    str,
    typer.Argument(metavar="PLAN", help="Plan of kctl, or JSON of kafka-reassign-partitions."),
]
_PlanOrJournal = Annotated[
    str | None,
    typer.Argument(
        metavar="[PLAN|JOURNAL]", help="Show its partitions; default: all moving partitions."
    ),
]
_Journal = Annotated[str, typer.Argument(metavar="JOURNAL", help="Journal of an execution.")]
_JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="FILE", help="Journal file; default: PLAN.journal."),
]


@app.command(
    "plan",
    epilog="Examples: kctl reassign plan --add-broker 4,5 --out plan.json · "
    "kctl reassign plan clicks --rf 3 --out plan.json · "
    "kctl reassign plan --balance --rate-window 60 --out plan.json",
)
@on_cluster
def plan(
    cluster: ClusterOptions,
    topics: _Topics = None,
    add_broker: Annotated[
        str | None,
        typer.Option("--add-broker", metavar="IDS", help="Spread replicas onto new brokers."),
    ] = None,
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="IDS", help="Move all replicas off brokers.")
    ] = None,
    replace: Annotated[
        str | None,
        typer.Option(
            "--replace", metavar="OLD:NEW", help="Move all replicas of one broker to another."
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Replace offline replicas, and repair rack violations.")
    ] = False,
    rf: Annotated[
        int | None,
        typer.Option("--rf", min=1, metavar="N", help="Set the replication factor to N."),
    ] = None,
    balance: Annotated[
        bool,
        typer.Option(
            "--balance", help="Even out counts, bytes and leaders of brokers; see --goals."
        ),
    ] = False,
    goals: Annotated[
        str | None,
        typer.Option(
            "--goals",
            metavar="LIST",
            help="With --balance: counts,bytes,leaders,bytes-in,bytes-out; the last two are "
            "sampled.",
        ),
    ] = None,
    rate_window: RateWindow = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="PLAN",
            help="Use the samples stored in a plan file instead of new ones.",
        ),
    ] = None,
    demote: Annotated[
        str | None, typer.Option("--demote", metavar="IDS", help="Move all leadership off brokers.")
    ] = None,
    log_dirs: Annotated[
        bool, typer.Option("--log-dirs", help="Even out the log directories within each broker.")
    ] = False,
    exclude_topic: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-topic", metavar="REGEX", help="Topics that are not moved; may be repeated."
        ),
    ] = None,
    exclude_broker: Annotated[
        str | None,
        typer.Option("--exclude-broker", metavar="IDS", help="Brokers that get no more replicas."),
    ] = None,
    racks: Annotated[
        str, typer.Option("--racks", metavar="RULE", help="strict, relaxed or ignored.")
    ] = "strict",
    max_moves: Annotated[
        int | None,
        typer.Option("--max-moves", min=0, metavar="N", help="Maximum number of replicas to copy."),
    ] = None,
    max_bytes_moved: Annotated[
        str | None,
        typer.Option("--max-bytes-moved", metavar="BYTES", help="Maximum bytes to copy: 20GB."),
    ] = None,
    moves_per_broker: MovesPerBroker = 5,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="N", help="Seed to break ties; the same seed gives the same plan."
        ),
    ] = 0,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="BYTES", help="Show the duration at this rate."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the plan to a file, for execute."),
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Print a row per partition, not per broker.")
    ] = False,
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="Show the results for several values of --max-moves and --max-bytes-moved.",
        ),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit code 5 if the plan has changes.")
    ] = False,
    output: Output = "table",
) -> int:
    """Plan a reassignment with the fewest moves; nothing is changed.

    One of --add-broker, --drain, --replace, --repair, --rf, --balance, --demote, --log-dirs is
    required. The rows are brokers, before and after. Goals on rates include the traffic of
    producers and followers, but not that of consumers, which is unknown.
    """
    from kctl.commands.reassign.plan import PlanRequest, make_plan
    from kctl.commands.reassign.rates import RateRequest

    verbs = {
        "add-broker": add_broker,
        "drain": drain,
        "replace": replace,
        "repair": repair or None,
        "rf": rf,
        "balance": balance or None,
        "demote": demote,
        "log-dirs": log_dirs or None,
    }
    request = PlanRequest(
        topics or [],
        {name: value for name, value in verbs.items() if value is not None},
        exclude_topic or [],
        exclude_broker,
        racks,
        max_moves,
        max_bytes_moved,
        moves_per_broker,
        seed,
        throttle,
        out,
        changes,
        front,
        exit_code,
        RateRequest(goals, rate_window, rates),
        output,
    )
    return make_plan(cluster, request)


@app.command(
    "execute",
    epilog="Example: kctl reassign execute plan.json --throttle 50MB --moves-per-broker 3",
)
@on_cluster
def execute(
    cluster: ClusterOptions,
    moves: MoveOptions,
    plan_file: _PlanFile,
    journal: _JournalOption = None,
) -> int:
    """Execute a plan to its end, a few moves at a time; earlier throttles are restored at the end.

    Every step is first written to a journal: `resume` continues after a crash, `rollback` reverts.
    """
    from kctl.commands.reassign.execute import execute_plan

    return execute_plan(cluster, plan_file, journal, moves)


@app.command("resume", epilog="Example: kctl reassign resume plan.json.journal --throttle 20MB")
@on_cluster
def resume(
    cluster: ClusterOptions,
    journal: _Journal,
    throttle: Throttle = None,
    moves_per_broker: Annotated[
        int | None,
        typer.Option(
            "--moves-per-broker",
            min=1,
            metavar="N",
            help="Parallel moves per broker, in and out each.",
        ),
    ] = None,
    ignore_free_space: IgnoreFreeSpace = False,
    output: Output = "table",
) -> int:
    """Continue an execution that was interrupted or paused."""
    from kctl.commands.reassign.execute import resume_journal

    return resume_journal(
        cluster, journal, throttle, moves_per_broker, output, ignores_room=ignore_free_space
    )


@app.command(
    "throttle",
    epilog="Examples: kctl reassign throttle plan.json.journal 20MB · kctl reassign throttle"
    " plan.json.journal none",
)
def throttle(
    journal: _Journal,
    rate: Annotated[
        str, typer.Argument(metavar="BYTES|auto|none", help="Bytes per second and broker: 50MB.")
    ],
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Change the throttle of an execution, also of one that another process is running."""
    from kctl.commands.reassign.change import change_execution, throttle_of

    return change_execution(journal, throttle_of(rate), timeout)


@app.command("pause", epilog="Example: kctl reassign pause plan.json.journal")
def pause(journal: _Journal, timeout: Timeout = TIMEOUT_S) -> int:
    """Start no more moves of an execution until it is resumed; started moves continue."""
    from engine.reassign.journal_state import SettingsChange
    from kctl.commands.reassign.change import change_execution

    return change_execution(journal, SettingsChange(is_paused=True), timeout)


@app.command(
    "throttles", epilog="Examples: kctl reassign throttles · kctl reassign throttles --clear"
)
@on_cluster
def throttles(
    cluster: ClusterOptions,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove throttles that no move needs.")
    ] = False,
    dry_run: PlanOnly = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Show each replication throttle, and the moves that need it."""
    from kctl.commands.reassign.throttles import show_throttles

    return show_throttles(cluster, clear=clear, dry_run=dry_run, yes=yes, output=output)


@app.command(
    "cancel",
    epilog="Examples: kctl reassign cancel plan.json.journal · kctl reassign cancel --all",
)
@on_cluster
def cancel(
    cluster: ClusterOptions,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOURNAL|TOPIC[:PARTITIONS]]...", help="Moves to cancel."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Cancel all moves of the cluster.")] = False,
    dry_run: PlanOnly = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Cancel moves in progress; with a journal, also remove its throttles."""
    from kctl.commands.reassign.cancel import CancelRequest, cancel_moves

    request = CancelRequest(what or [], every, dry_run, yes, output)
    return cancel_moves(cluster, request)


@app.command("rollback", epilog="Example: kctl reassign rollback plan.json.journal")
@on_cluster
def rollback(cluster: ClusterOptions, moves: MoveOptions, journal: _Journal) -> int:
    """Restore the replicas of every partition from before an execution; writes a journal, too."""
    from kctl.commands.reassign.rollback import roll_back

    return roll_back(cluster, journal, moves)


@app.command("status", epilog="Example: kctl reassign status plan.json --watch")
@on_cluster
def status(
    cluster: ClusterOptions,
    plan_file: _PlanOrJournal = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Print each row again when it changes, until all moves are complete."
        ),
    ] = False,
    output: Output = "table",
) -> int:
    """Show the progress of moves: the controller's phase, replicas, bytes."""
    from kctl.commands.reassign.status import show_status

    return show_status(cluster, plan_file, watch=watch, output=output)


@app.command("verify", epilog="Example: kctl reassign verify plan.json")
@on_cluster
def verify(cluster: ClusterOptions, plan_file: _PlanFile, output: Output = "table") -> int:
    """Show whether a plan is complete, and which throttles exist; exit code 4 if it is not."""
    from kctl.commands.reassign.status import verify_plan

    return verify_plan(cluster, plan_file, output)


@app.command(
    "rehearse", epilog="Example: kctl reassign rehearse plan.json --kill 2 --data-bytes 100MB"
)
@on_cluster
def rehearse(
    cluster: ClusterOptions,
    plan_file: _PlanFile,
    kill: Annotated[
        int | None,
        typer.Option(
            "--kill", metavar="BROKER", help="Kill this broker during the moves, and restart it."
        ),
    ] = None,
    data_bytes: Annotated[
        str,
        typer.Option("--data-bytes", metavar="BYTES", help="Total size of the copy's replicas."),
    ] = "64MB",
    moves_per_broker: MovesPerBroker = 5,
    no_election: NoElection = False,
    output: Output = "table",
) -> int:
    """Execute a plan on an embedded copy of the cluster, and show the result; nothing is changed.

    The copy has the cluster's brokers, racks, topics, assignments and topic settings, and records
    in proportion to the real sizes.
    """
    from kctl.commands.reassign.rehearse import RehearseRequest, rehearse_plan

    request = RehearseRequest(
        plan_file, kill, data_bytes, moves_per_broker, not no_election, output
    )
    return rehearse_plan(cluster, request)


@app.command("explain", epilog="Example: kctl reassign explain plan.json")
@on_cluster
def explain(cluster: ClusterOptions, plan_file: _PlanFile, output: Output = "table") -> int:
    """Show the controller's steps for each partition of a plan, and what may fail."""
    from kctl.commands.reassign.explain import explain_plan

    return explain_plan(cluster, plan_file, output)
