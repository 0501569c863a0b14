"""Whole jobs: plan, ask, execute, look whether it is as wanted; a job that ended early goes on.

A job keeps its plan and journal in `$XDG_STATE_HOME/kctl/reassign`, named by the cluster and the
job: the same command again goes on where it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.errors import EngineError
from engine.host.real import RealFiles
from engine.planner.cluster_model import ClusterModel
from engine.planner.constraints import PlanConstraints
from engine.planner.plan import ReassignmentPlan
from engine.planner.plan_file import plan_to_json
from engine.reassign.cluster_reader import read_cluster
from engine.reassign.execution import Execution
from engine.reassign.journal import Begun, MoveJournal, read_journal
from engine.reassign.plan_reading import in_order
from kctl import exits
from kctl.asking import confirm, report_error, say
from kctl.commands.move_options import MoveOptions
from kctl.commands.reassign_execute import (
    END_COLUMNS,
    ask_to_execute,
    begin,
    go_on,
    roll_back,
    settings_of,
)
from kctl.commands.reassign_plan import tell_plan, write_plan
from kctl.connect import ClusterOptions, connect
from kctl.ending import end_with
from kctl.render import check_format


class JobRequest(NamedTuple):
    """A job: its name (`drain-3`), what plans it, and how its moves are made."""

    name: str
    plan: Callable[[ClusterModel, PlanConstraints], ReassignmentPlan]
    moves: MoveOptions
    #: Who must hold no replica in the end.
    emptied: int | None = None


class NotEmpty(EngineError):
    """A broker still holds replicas after it was drained."""

    def __init__(self, broker_id: int, count: int) -> None:
        self.broker_id = broker_id
        self.count = count
        self.hint = f"`kctl brokers log-dirs {broker_id} --replicas` shows them; drain again"
        super().__init__(f"broker {broker_id} still holds replicas: {count}")


def run_job(options: ClusterOptions, request: JobRequest) -> int:
    """Plan and execute a job, or go on with it; returns the exit code."""
    check_format(request.moves.output)
    settings = settings_of(request.moves)
    with connect(options) as client:
        path = _path(client, request.name)
        if _is_open(path):
            say(f"going on with the job of before: {path}")
            return _finish(client, request, _resume(client, path, request.moves.output))
        read = read_cluster(client)
        for warning in read.warnings:
            say(f"warning: {warning}")
        constraints = PlanConstraints(moves_per_broker=request.moves.moves_per_broker)
        plan = request.plan(read.model, constraints)
        tell_plan(plan, settings.rates.replication, None)
        if plan.is_empty:
            return _finish(client, request, end_with(END_COLUMNS, [], request.moves.output))
        if request.moves.dry_run:
            write_plan(plan, request.moves.output, is_by_change=True)
            return exits.CHANGES_PENDING
        changes = in_order(plan)
        confirm(ask_to_execute(client, changes), yes=request.moves.yes)
        files = RealFiles()
        files.make_dir(os.path.dirname(path))
        files.replace_file(path, plan_to_json(plan, read.cluster_id).encode())
        settings = settings_of(request.moves, plan)
        begun = Begun(read.cluster_id, tuple(changes), settings)
        code = begin(client, f"{path}.journal", begun, request.moves.output)
        return _finish(client, request, code)


def undo_job(options: ClusterOptions, request: JobRequest) -> int:
    """Bring back what a job has changed; returns the exit code."""
    with connect(options) as client:
        path = _path(client, request.name)
    return roll_back(options, f"{path}.journal", request.moves)


def _path(client: KafkaClient, name: str) -> str:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    cluster = re.sub(r"[^\w-]", "_", client.view([]).cluster_id or "cluster")
    return f"{home}/kctl/reassign/{cluster}-{name}.json"


def _is_open(path: str) -> bool:
    files = RealFiles()
    journal = f"{path}.journal"
    return files.exists(journal) and not read_journal(files, journal).is_over


def _resume(client: KafkaClient, path: str, output: str) -> int:
    journal, _ = MoveJournal.reopen(RealFiles(), f"{path}.journal")
    return go_on(client, journal, f"{path}.journal", output, Execution.run)


def _finish(client: KafkaClient, request: JobRequest, code: int) -> int:
    """Look whether the broker is empty that is to be."""
    broker_id = request.emptied
    if broker_id is None or code != exits.OK or request.moves.dry_run:
        return code
    dirs = describe_log_dirs(client, [id_ for id_ in client.view([]).brokers if id_ == broker_id])
    answer = dirs.get(broker_id, [])
    if isinstance(answer, EngineError):
        report_error(answer)
        return exits.FAILED
    count = sum(len(log_dir.replicas) for log_dir in answer)
    if count:
        report_error(NotEmpty(broker_id, count))
        return exits.FAILED
    say(f"broker {broker_id} holds no replica")
    return code
