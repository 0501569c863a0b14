"""Implementation of `kctl leaders balance --reorder` and `demote`: jobs that move only leaders."""

from __future__ import annotations

from engine.planner import planner
from engine.planner.constraints import LevelGoal
from kctl.commands.reassign.jobs import JobRequest, run_job, undo_job
from kctl.connect import ClusterOptions
from kctl.console import notify
from kctl.options.moves import MoveOptions

#: Reordering replicas copies no records, so that all changes may run in parallel.
_AT_ONCE = 1000


def balance_leaders(options: ClusterOptions, *, dry_run: bool, yes: bool, output: str) -> int:
    """Even out the numbers of leaders by reordering as few replica lists as possible.

    No replica moves; reassignments change the order, and preferred leaders are elected. Returns the
    exit code.
    """
    request = JobRequest(
        "leaders",
        lambda model, constraints: planner.balance(model, {LevelGoal.LEADERS}, constraints),
        MoveOptions(moves_per_broker=_AT_ONCE, dry_run=dry_run, yes=yes, output=output),
    )
    return run_job(options, request)


def demote_broker(
    options: ClusterOptions, broker_id: int, *, back: bool, dry_run: bool, yes: bool, output: str
) -> int:
    """Move all leadership off a broker, or back with `back`; returns the exit code.

    It reorders replica lists, so that the broker's replicas are last, and elects preferred leaders.
    `back` restores the lists of before.
    """
    request = JobRequest(
        f"demote-{broker_id}",
        lambda model, constraints: planner.demote(model, [broker_id], constraints),
        MoveOptions(moves_per_broker=_AT_ONCE, dry_run=dry_run, yes=yes, output=output),
    )
    if back:
        return undo_job(options, request)
    code = run_job(options, request)
    if not code:
        notify(f"`kctl leaders demote {broker_id} --back` brings its leadership back")
    return code
