"""`kctl reassign`: plan, execute, watch, cancel moves of replicas."""

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
    list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Only these topics change.")
]
_PlanFile = Annotated[
    str,
    typer.Argument(metavar="PLAN", help="A plan of ours, or JSON of kafka-reassign-partitions."),
]
_PlanOrJournal = Annotated[
    str | None, typer.Argument(metavar="[PLAN|JOURNAL]", help="Its partitions; else all that move.")
]
_Journal = Annotated[str, typer.Argument(metavar="JOURNAL", help="What an execution has written.")]
_JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="FILE", help="Where to keep it; PLAN.journal if not given."),
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
        typer.Option("--add-broker", metavar="IDS", help="Spread onto brokers that were added."),
    ] = None,
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="IDS", help="Empty brokers.")
    ] = None,
    replace: Annotated[
        str | None,
        typer.Option("--replace", metavar="OLD:NEW", help="Give all of one broker to another."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend offline replicas and rack faults.")
    ] = False,
    rf: Annotated[
        int | None, typer.Option("--rf", min=1, metavar="N", help="Have N replicas of each.")
    ] = None,
    balance: Annotated[
        bool, typer.Option("--balance", help="Level counts, bytes and leaders; see --goals.")
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
        typer.Option("--rates", metavar="PLAN", help="With the samples of a plan's file, not new."),
    ] = None,
    demote: Annotated[
        str | None, typer.Option("--demote", metavar="IDS", help="Have brokers lead nothing.")
    ] = None,
    log_dirs: Annotated[
        bool, typer.Option("--log-dirs", help="Level the directories within each broker.")
    ] = False,
    exclude_topic: Annotated[
        list[str] | None,
        typer.Option("--exclude-topic", metavar="REGEX", help="Topics that stay; may be repeated."),
    ] = None,
    exclude_broker: Annotated[
        str | None,
        typer.Option("--exclude-broker", metavar="IDS", help="Brokers that get nothing more."),
    ] = None,
    racks: Annotated[
        str, typer.Option("--racks", metavar="RULE", help="strict, relaxed or ignored.")
    ] = "strict",
    max_moves: Annotated[
        int | None, typer.Option("--max-moves", min=0, metavar="N", help="Copy no more replicas.")
    ] = None,
    max_bytes_moved: Annotated[
        str | None,
        typer.Option("--max-bytes-moved", metavar="BYTES", help="Copy no more than this: 20GB."),
    ] = None,
    moves_per_broker: MovesPerBroker = 5,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Breaks ties; same seed, same plan.")
    ] = 0,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="BYTES", help="Show how long it takes at this rate."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write the plan, for execute.")
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="A row for each partition, not for each broker.")
    ] = False,
    front: Annotated[
        bool,
        typer.Option("--front", help="Rows of what --max-moves, --max-bytes-moved would bring."),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit code 5 if there is something to do.")
    ] = False,
    output: Output = "table",
) -> int:
    """Plan moves by the fewest that do it; nothing is changed.

    One of --add-broker, --drain, --replace, --repair, --rf, --balance, --demote, --log-dirs says
    what for. The rows are brokers, before and after. Goals on rates count what producers write and
    followers fetch: what consumers fetch is not known.
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
    """Execute a plan to its end, a few moves at a time; what was throttled before is so again.

    Everything is written to a journal first: `resume` goes on after a death, `rollback` goes back.
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
            "--moves-per-broker", min=1, metavar="N", help="At once, inwards and outwards each."
        ),
    ] = None,
    ignore_free_space: IgnoreFreeSpace = False,
    output: Output = "table",
) -> int:
    """Go on with an execution that was ended before its time, or is paused."""
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
        str, typer.Argument(metavar="BYTES|auto|none", help="For each broker and second: 50MB.")
    ],
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Change the throttle of an execution, also while another process is at work by it."""
    from kctl.commands.reassign.change import change_execution, throttle_of

    return change_execution(journal, throttle_of(rate), timeout)


@app.command("pause", epilog="Example: kctl reassign pause plan.json.journal")
def pause(journal: _Journal, timeout: Timeout = TIMEOUT_S) -> int:
    """Begin no more moves of an execution until it is resumed; those under way go on."""
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
        bool, typer.Option("--clear", help="Take away those that no move needs.")
    ] = False,
    dry_run: PlanOnly = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Show each throttle of replication, and which moves need it."""
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
        typer.Argument(metavar="[JOURNAL|TOPIC[:PARTITIONS]]...", help="What to take back."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All moves of the cluster.")] = False,
    dry_run: PlanOnly = False,
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Take back moves that are under way; by a journal, its throttles too."""
    from kctl.commands.reassign.cancel import CancelRequest, cancel_moves

    request = CancelRequest(what or [], every, dry_run, yes, output)
    return cancel_moves(cluster, request)


@app.command("rollback", epilog="Example: kctl reassign rollback plan.json.journal")
@on_cluster
def rollback(cluster: ClusterOptions, moves: MoveOptions, journal: _Journal) -> int:
    """Bring every partition of an execution back to where it was before; has a journal itself."""
    from kctl.commands.reassign.rollback import roll_back

    return roll_back(cluster, journal, moves)


@app.command("status", epilog="Example: kctl reassign status plan.json --watch")
@on_cluster
def status(
    cluster: ClusterOptions,
    plan_file: _PlanOrJournal = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="A row again whenever it changed, until all is done.")
    ] = False,
    output: Output = "table",
) -> int:
    """Show where moves stand: the controller's phase, replicas, bytes."""
    from kctl.commands.reassign.status import show_status

    return show_status(cluster, plan_file, watch=watch, output=output)


@app.command("verify", epilog="Example: kctl reassign verify plan.json")
@on_cluster
def verify(cluster: ClusterOptions, plan_file: _PlanFile, output: Output = "table") -> int:
    """Return whether a plan is carried out, and which throttles are there; exit code 4 if not."""
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
        typer.Option("--kill", metavar="BROKER", help="Kill it on the way, start it again later."),
    ] = None,
    data_bytes: Annotated[
        str,
        typer.Option("--data-bytes", metavar="BYTES", help="What all replicas of the copy have."),
    ] = "64MB",
    moves_per_broker: MovesPerBroker = 5,
    no_election: NoElection = False,
    output: Output = "table",
) -> int:
    """Execute a plan on an embedded copy of the cluster, and show what happens; nothing is changed.

    The copy has the brokers, racks, topics, assignments and settings of topics, and records in
    proportion to what there is.
    """
    from kctl.commands.reassign.rehearse import RehearseRequest, rehearse_plan

    request = RehearseRequest(
        plan_file, kill, data_bytes, moves_per_broker, not no_election, output
    )
    return rehearse_plan(cluster, request)


@app.command("explain", epilog="Example: kctl reassign explain plan.json")
@on_cluster
def explain(cluster: ClusterOptions, plan_file: _PlanFile, output: Output = "table") -> int:
    """Show what the controller will do with each partition, step by step, and what may fail."""
    from kctl.commands.reassign.explain import explain_plan

    return explain_plan(cluster, plan_file, output)
