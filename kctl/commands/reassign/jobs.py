"""Jobs: plan, confirm, execute, check the result; resume after an interruption.

A job keeps its plan and journal in `$XDG_STATE_HOME/kctl/reassign`, named by the cluster and the
job: the same command, run again, continues an interrupted job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import PlanConstraints
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_file import plan_to_json
from engine.reassign.broker_drain import await_replicas_left
from engine.reassign.cluster_reader import read_cluster
from engine.reassign.journal import JournalHeld, is_held, is_open
from engine.reassign.journal_state import Begun, JournalState, SettingsChange
from engine.reassign.plan_reading import in_order
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.reassign.change import throttle_of
from kctl.commands.reassign.execute import (
    END_COLUMNS,
    begin_execution,
    execution_prompt,
    execution_settings,
    resume_execution,
)
from kctl.commands.reassign.files import read_journal_state, state_folder
from kctl.commands.reassign.plan import (
    CHANGE_COLUMNS,
    change_row,
    end_short_of_goal,
    print_plan,
    print_plan_rows,
)
from kctl.commands.reassign.preflight import require_possible
from kctl.commands.reassign.rollback import roll_back
from kctl.connect import ClusterOptions, connect
from kctl.console import confirm, notify, report_error
from kctl.options.moves import MoveOptions
from kctl.render import check_format, write_rows
from kctl.render.table import size_text


class JobRequest(NamedTuple):
    """A job: its name (such as `drain-3`), its planner, and options of its moves."""

    name: str
    plan: Callable[[ClusterModel, PlanConstraints], ReassignmentPlan]
    moves: MoveOptions
    #: Broker that must have no replica at the end; None if there is none.
    emptied: int | None = None


class NotEmpty(EngineError):
    """A broker still has replicas after it was drained."""

    def __init__(self, broker_id: int, count: int) -> None:
        self.broker_id = broker_id
        self.count = count
        self.hint = "`kctl topics describe` shows the replicas of every partition; drain again"
        super().__init__(f"broker {broker_id} still holds replicas: {count}")


def run_job(options: ClusterOptions, request: JobRequest) -> int:
    """Plan and execute a job, or resume it after an interruption; returns the exit code.

    A job is a reassignment with a name, by which its plan and journal are stored and found again.
    """
    check_format(request.moves.output)
    settings = execution_settings(request.moves)
    with connect(options) as client:
        path = _path(client, request.name)
        if is_open(RealHeldFiles(), f"{path}.journal"):
            return _resume_job(client, request, f"{path}.journal")
        read = read_cluster(client)
        for warning in read.warnings:
            notify(f"warning: {warning}")
        constraints = PlanConstraints(moves_per_broker=request.moves.moves_per_broker)
        plan = request.plan(read.model, constraints)
        print_plan(plan, settings.rates.replication, None)
        if plan.is_empty:
            code = end_with(END_COLUMNS, [], request.moves.output)
            return end_short_of_goal(plan) if plan.unmet else _check_emptied(client, request, code)
        changes, settings = in_order(plan), execution_settings(request.moves, plan)
        require_possible(
            client,
            changes,
            settings,
            is_dry_run=request.moves.dry_run,
            ignores_room=request.moves.ignore_free_space,
        )
        if request.moves.dry_run:
            print_plan_rows(plan, request.moves.output, is_by_change=True)
            return end_short_of_goal(plan) if plan.unmet else exits.CHANGES_PENDING
        confirm(execution_prompt(client, changes), yes=request.moves.yes)
        files = RealFiles()
        files.make_dir(os.path.dirname(path))
        files.replace_file(path, plan_to_json(plan, read.cluster_id).encode())
        begun = Begun(read.cluster_id, tuple(changes), settings)
        code = begin_execution(client, f"{path}.journal", begun, request.moves.output)
        if plan.unmet and code == exits.OK:
            return end_short_of_goal(plan)
        return _check_emptied(client, request, code)


def undo_job(options: ClusterOptions, request: JobRequest) -> int:
    """Restore the replicas from before a job, by its journal; returns the exit code."""
    with connect(options) as client:
        path = _path(client, request.name)
    return roll_back(options, f"{path}.journal", request.moves)


def _path(client: KafkaClient, name: str) -> str:
    """Return the path of a job's plan; its journal has the same path and the suffix .journal.

    It depends on the cluster's id and the job's name, so that the same command finds it again.
    """
    cluster = re.sub(r"[^\w-]", "_", client.view([]).cluster_id or "cluster")
    return f"{state_folder()}/{cluster}-{name}.json"


def _resume_job(client: KafkaClient, request: JobRequest, journal: str) -> int:
    """Show a job that an earlier command left unfinished, confirm, and resume it.

    Returns the exit code: FAILED if what is resumed is the job's cancel. Errors: JournalHeld if
    another process executes it.
    """
    state = read_journal_state(journal)
    left = [change for change in state.begun.changes if change.name not in state.ended]
    what = "is being cancelled" if state.is_cancelled else "is not over"
    of = counted(len(state.begun.changes), "partition")
    notify(
        f"the job of before {what}: {len(left)} of {of} left, {_throttle_text(state)}; {journal}"
    )
    notify(f"`kctl reassign status {journal}` shows it, `cancel` and `rollback` end it")
    if request.moves.dry_run:
        write_rows(CHANGE_COLUMNS, [change_row(c, 1) for c in left], request.moves.output)
        return exits.CHANGES_PENDING
    if is_held(RealHeldFiles(), journal):
        raise JournalHeld(journal, state.writer)
    verb = "take back" if state.is_cancelled else "go on with"
    confirm(f"{verb} {counted(len(left), 'partition')} of the job of before", yes=request.moves.yes)
    notify(f"going on with the job of before: {journal}")
    code = resume_execution(
        client,
        journal,
        change_from_options(request.moves),
        request.moves.output,
        ignores_room=request.moves.ignore_free_space,
    )
    if not state.is_cancelled:
        return _check_emptied(client, request, code)
    if code == exits.OK:
        notify("error: the earlier job is cancelled; the same command again begins a new one")
    return exits.FAILED


def change_from_options(moves: MoveOptions) -> SettingsChange:
    """Return the change of settings with which a job is resumed: throttle and move limit.

    An option that is not given keeps the journal's value.
    """
    is_default = moves.moves_per_broker == MoveOptions().moves_per_broker
    bound = None if is_default else moves.moves_per_broker
    change = SettingsChange() if moves.throttle is None else throttle_of(moves.throttle)
    return change._replace(moves_per_broker=bound, is_paused=False)


def _throttle_text(state: JournalState) -> str:
    """Return the throttle of an interrupted job as text of its option."""
    settings = state.settings
    if settings.is_adaptive:
        return "--throttle auto"
    rate = settings.rates.replication
    return "no throttle" if rate is None else f"--throttle {size_text(rate)}/s"


def _check_emptied(client: KafkaClient, request: JobRequest, code: int) -> int:
    """Return FAILED if the broker that a job was to empty still has replicas, else `code`.

    `code` is the job's exit code up to here. Jobs that empty no broker, dry runs and failed ones
    return it.
    """
    broker_id = request.emptied
    if broker_id is None or code != exits.OK or request.moves.dry_run:
        return code
    try:
        count = await_replicas_left(client, broker_id)
    except EngineError as error:
        report_error(error)
        return exits.FAILED
    if count:
        report_error(NotEmpty(broker_id, count))
        return exits.FAILED
    notify(f"broker {broker_id} holds no replica")
    return code
