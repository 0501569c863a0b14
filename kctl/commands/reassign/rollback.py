"""Implementation of `kctl reassign rollback`: restore the replicas from before an execution."""

from __future__ import annotations

import time
from collections.abc import Sequence

from engine.client.blocking import KafkaClient
from engine.client.reassignments import list_reassignments
from engine.planner.plan import PartitionChange
from engine.reassign.execution import require_cluster
from engine.reassign.journal_state import Begun, JournalState
from engine.reassign.plan_reading import reverse_changes
from kctl import exits
from kctl.command_results import end_with
from kctl.commands.reassign.cancel import cancel_journal
from kctl.commands.reassign.execute import (
    END_COLUMNS,
    begin_execution,
    execution_prompt,
    execution_settings,
)
from kctl.commands.reassign.files import read_journal_state
from kctl.commands.reassign.plan import CHANGE_COLUMNS, change_row
from kctl.commands.reassign.preflight import require_possible
from kctl.connect import ClusterOptions, connect
from kctl.console import confirm, notify
from kctl.options.moves import MoveOptions
from kctl.render import check_format, write_rows


def roll_back(options: ClusterOptions, path: str, moves: MoveOptions) -> int:
    """Reassign the partitions of an execution back to their replicas of before.

    An execution that is not over is cancelled first. The rollback has its own journal. Returns the
    exit code. Errors: WrongCluster, PlanRefused, those of journals.
    """
    check_format(moves.output)
    state = read_journal_state(path)
    settings = execution_settings(moves)
    with connect(options) as client:
        cluster_id = client.view([]).cluster_id
        require_cluster(state.begun.cluster_id, cluster_id)
        if not state.is_over:
            notify(f"{path} is not over: its moves are cancelled first")
            if moves.dry_run:
                return _show(
                    _reverse_moves_in_progress(client, state) + _reverse_changes(client, state),
                    moves.output,
                )
            code = cancel_journal(options, path, yes=moves.yes, output=None)
            if code != exits.OK:
                return code
            _await_end_of_moves(client, state.begun.changes)
        changes = _reverse_changes(client, state)
        if not changes:
            notify("everything is where it was before")
            return end_with(END_COLUMNS, [], moves.output)
        require_possible(
            client,
            changes,
            settings,
            is_dry_run=moves.dry_run,
            ignores_room=moves.ignore_free_space,
        )
        if moves.dry_run:
            return _show(changes, moves.output)
        confirm(f"roll back: {execution_prompt(client, changes)}", yes=moves.yes)
        begun = Begun(cluster_id, tuple(changes), settings)
        return begin_execution(client, f"{path}.rollback", begun, moves.output)


def _reverse_changes(client: KafkaClient, state: JournalState) -> list[PartitionChange]:
    """Return the changes that bring back the replicas of partitions that a journal has changed."""
    view = client.view({change.topic for change in state.begun.changes})
    found = ((c.name, view.partition(c.name)) for c in state.begun.changes)
    now = {key: partition for key, partition in found if partition is not None}
    return reverse_changes(state.begun.changes, now)


def _reverse_moves_in_progress(client: KafkaClient, state: JournalState) -> list[PartitionChange]:
    """Return a change for each reassignment in progress that a cancel reverts.

    A dry run prints them; nothing is executed by them.
    """
    ongoing = list_reassignments(client)
    return [
        change._replace(
            old_replicas=change.new_replicas,
            new_replicas=change.old_replicas,
            old_leader=None,
            new_leader=change.old_replicas[0],
            size_bytes=0,
            old_sizes=(),
            new_log_dirs=(),
        )
        for change in state.begun.changes
        if change.name in ongoing and ongoing[change.name].target == change.new_replicas
    ]


def _show(changes: Sequence[PartitionChange], output: str) -> int:
    """Print the changes of a rollback; returns CHANGES_PENDING if there are any."""
    write_rows(CHANGE_COLUMNS, [change_row(change, 1) for change in changes], output)
    return exits.CHANGES_PENDING if changes else exits.OK


def _await_end_of_moves(client: KafkaClient, changes: Sequence[PartitionChange]) -> None:
    """Wait until no changed partition is being reassigned, up to the client's time-out.

    The rollback of a partition would conflict with a reassignment that is being cancelled.
    """
    keys = {change.name for change in changes}
    deadline_s = time.monotonic() + client.timeout_ms / 1000
    while time.monotonic() < deadline_s and keys & list_reassignments(client).keys():
        time.sleep(0.2)
