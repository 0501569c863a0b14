"""Replica moves that a declared state requires: one plan and one journal per cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.declared.resources import ClusterTopic
from engine.declared.state_reading import read_topics
from engine.declared.steps import MoveReplicas
from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.planner.constraints import PlanConstraints
from engine.planner.plan import PartitionChange
from engine.planner.plan_file import TargetRow, changes_from_targets
from engine.reassign.cluster_reader import read_cluster
from engine.reassign.journal import JournalHeld, is_held
from engine.reassign.journal_state import Begun
from engine.reassign.plan_reading import in_order
from kctl.arguments import counted
from kctl.commands.reassign.execute import begin_execution, execution_settings, resume_execution
from kctl.commands.reassign.files import read_journal_state
from kctl.commands.reassign.jobs import change_from_options
from kctl.commands.reassign.preflight import require_possible
from kctl.console import confirm, notify
from kctl.declared.open_moves import journal_path
from kctl.options.moves import MoveOptions
from kctl.render.table import size_text


class NotMoved(EngineError):
    """The replicas of a topic differ from the declared ones after its moves have ended."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hint = "run the command again; `kctl reassign status` shows what moves"
        super().__init__(f"{topic}: replicas are not as declared yet")


class PlannedMoves(NamedTuple):
    """The changes of partitions that lead to the declared replicas."""

    cluster_id: str | None
    changes: Sequence[PartitionChange]


def plan_moves(
    client: KafkaClient, operations: Sequence[MoveReplicas], moves: MoveOptions
) -> PlannedMoves:
    """Return the reassignments from the cluster's current replicas to the declared ones.

    A declared replication factor is planned; a declared placement is taken as it is. Warnings are
    printed. Errors: ReassignmentInProgress, PlanRefused, those of requests.
    """
    read = read_cluster(client)
    for warning in read.warnings:
        notify(f"warning: {warning}")
    changes: list[PartitionChange] = []
    factors = {
        one.topic: one.replication_factor
        for one in operations
        if one.replication_factor is not None
    }
    if factors:
        from engine.planner.planner import set_replication_factor

        constraints = PlanConstraints(moves_per_broker=moves.moves_per_broker)
        plan = set_replication_factor(read.model, factors, constraints)
        for line in (*plan.warnings, *(f"{u.subject}: {u.reason}" for u in plan.unmet)):
            notify(f"warning: {line}")
        changes += in_order(plan)
    rows = [
        TargetRow(one.topic, number, replicas)
        for one in operations
        for number, replicas in enumerate(one.placement)
    ]
    return PlannedMoves(read.cluster_id, changes + changes_from_targets(read.model, rows))


def check_moves(
    client: KafkaClient, operations: Sequence[MoveReplicas], moves: MoveOptions
) -> None:
    """Print how many bytes the moves would copy, and check that they are possible; move nothing.

    Errors: those of `plan_moves`, PlanRefused if the preflight fails.
    """
    planned = plan_moves(client, operations, moves)
    copies = sum(len(change.added) for change in planned.changes)
    size = size_text(sum(change.bytes_moved for change in planned.changes))
    notify(
        f"moves: {counted(len(planned.changes), 'partition')}, "
        f"{counted(copies, 'replica')} to copy, {size}"
    )
    require_possible(
        client,
        planned.changes,
        execution_settings(moves),
        is_dry_run=moves.dry_run,
        ignores_room=moves.ignore_free_space,
    )


def execute_moves(
    client: KafkaClient, operations: Sequence[MoveReplicas], moves: MoveOptions
) -> list[EngineError | None]:
    """Reassign the replicas of topics, throttled and recorded in a journal, and wait for the end.

    Returns one item for each operation: None if the topic's replicas are as declared, NotMoved if
    they still differ. Errors: those of `plan_moves` and of executions.
    """
    planned = plan_moves(client, operations, moves)
    if planned.changes:
        settings = execution_settings(moves)
        require_possible(
            client,
            planned.changes,
            settings,
            is_dry_run=False,
            ignores_room=moves.ignore_free_space,
        )
        path = journal_path(client)
        RealFiles().make_dir(os.path.dirname(path))
        begin_execution(
            client, path, Begun(planned.cluster_id, tuple(planned.changes), settings), None
        )
    topics = read_topics(client, [one.topic for one in operations])
    return [
        None if is_placed(one, topics.get(one.topic)) else NotMoved(one.topic) for one in operations
    ]


def is_placed(wanted: MoveReplicas, topic: ClusterTopic | None) -> bool:
    """Return True if a topic has the declared replicas.

    That is the declared replicas of each partition, surplus partitions ignored, or else the
    declared replication factor. False if the topic is missing.
    """
    if topic is None:
        return False
    if wanted.placement:
        return topic.placement[: len(wanted.placement)] == wanted.placement
    return topic.replication_factor == wanted.replication_factor


def finish_earlier_moves(client: KafkaClient, moves: MoveOptions) -> int:
    """Resume, after confirmation, the moves of an earlier `apply` that was interrupted.

    Returns the exit code. Errors: JournalHeld if another process executes them, those of
    executions.
    """
    path = journal_path(client)
    if is_held(RealHeldFiles(), path):
        raise JournalHeld(path, read_journal_state(path).writer)
    confirm("go on with these moves", yes=moves.yes)
    return resume_execution(
        client, path, change_from_options(moves), None, ignores_room=moves.ignore_free_space
    )
