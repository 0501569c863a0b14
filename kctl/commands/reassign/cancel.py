"""Implementation of `kctl reassign cancel`: revert moves, also of another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.reassignments import alter_reassignments, list_reassignments
from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import ProcessIdentity, identify_process
from engine.model import TopicPartition
from engine.reassign.execution import CANCELLED, require_cluster
from engine.reassign.journal import JournalHeld, MoveJournal, is_held, request_cancel
from engine.reassign.journal_state import JournalState, read_journal
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.reassign.execute import print_results, run_execution
from kctl.commands.reassign.files import read_journal_state
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.render import Column, check_format, write_rows
from kctl.selection import NoSelector, select_partitions

CANCEL_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("result", "RESULT"),
)
#: Result column of a dry run.
MOVING: Final = "moving"
#: Pause between two reads of another process's journal.
_POLL_MS = 100


class CancelNotHonoured(EngineError):
    """The process that executes a journal did not react to a cancel in time."""

    def __init__(self, path: str, writer: ProcessIdentity | None, waited_ms: int) -> None:
        """Create the error for a process that does not react to a cancel request in its journal.

        `writer` None means that the journal does not name its process.
        """
        self.path = path
        self.writer = writer
        self.waited_ms = waited_ms
        self.hint = (
            "the request stays in the journal: it is followed when that process goes on; or end"
            f" the process and run `kctl reassign cancel {path}` again"
        )
        super().__init__(
            f"{writer or 'the process'} that executes {path} has not answered for"
            f" {waited_ms / 1000:g} s: it may be stopped, or its cluster out of reach"
        )


class AllWithTargets(EngineError):
    """--all is given together with the names of moves."""

    exit_code = exits.USAGE

    def __init__(self, targets: Sequence[str]) -> None:
        self.targets = tuple(targets)
        self.hint = "leave --all out, or the names"
        super().__init__(f"--all cancels all moves, not only {', '.join(targets)}")


class CancelRequest(NamedTuple):
    """The arguments and options of `kctl reassign cancel`."""

    targets: list[str]
    every: bool
    dry_run: bool
    yes: bool
    output: str


def cancel_moves(options: ClusterOptions, request: CancelRequest) -> int:
    """Cancel reassignments of a journal, of partitions or of the cluster, after confirmation.

    Returns the exit code. A journal knows the order of replicas of before, and its throttles; the
    cluster alone does not.
    """
    targets, every, dry_run, yes, output = request
    check_format(output)
    if every and targets:
        raise AllWithTargets(targets)
    if len(targets) == 1 and not every and RealHeldFiles().exists(targets[0]):
        if dry_run:
            return _print_moves_of_journal(options, targets[0], output)
        return cancel_journal(options, targets[0], yes=yes, output=output)
    with connect(options) as client:
        errors: list[EngineError] = []
        keys: list[TopicPartition] | None = None
        if not every:
            if not targets:
                raise NoSelector
            _, keys, errors = select_partitions(client, targets)
        ongoing = list_reassignments(client)
        chosen = {
            key: ongoing[key] for key in (ongoing if keys is None else keys) if key in ongoing
        }
        for error in errors:
            report_error(error)
        if not chosen:
            notify("nothing of that moves")
            return end_with(CANCEL_COLUMNS, [], output, failures=len(errors))
        count = counted(len(chosen), "partition")
        if dry_run:
            rows = [_row(key, move.original, MOVING) for key, move in chosen.items()]
            write_rows(CANCEL_COLUMNS, rows, output)
            return exits.FAILED if errors else exits.CHANGES_PENDING
        confirm(f"cancel the moves of {count} of {cluster_named(client)}", yes=yes)
        answers = alter_reassignments(client, dict.fromkeys(chosen))
    failures = len(errors)
    rows = []
    for key, error_or_none in answers.items():
        if error_or_none is not None:
            report_error(error_or_none, str(key))
            failures += 1
            continue
        rows.append(_row(key, chosen[key].original, CANCELLED))
    notify("throttles stay as they are: `kctl reassign throttles` shows them")
    reordered = sum(bool(chosen[key].removing) for key, error in answers.items() if error is None)
    if reordered:
        notify(
            f"warning: the controller knows no order of before: {counted(reordered, 'partition')}"
            " may prefer another leader now; a journal or plan knows it (`kctl reassign rollback`)"
        )
    return end_with(CANCEL_COLUMNS, rows, output, failures=failures)


def _row(key: TopicPartition, replicas: Sequence[int], result: str) -> dict[str, object]:
    """Return the row of a partition with the replicas to which cancelling returns it."""
    return {**key._asdict(), "replicas": list(replicas), "result": result}


def _print_moves_of_journal(options: ClusterOptions, path: str, output: str) -> int:
    """Print the reassignments that cancelling a journal would revert (--dry-run).

    Returns the exit code: CHANGES_PENDING unless the journal is over.
    """
    state = read_journal_state(path)
    if state.is_over:
        notify(f"{path}: it is over already; `kctl reassign rollback {path}` goes back")
        return exits.OK
    with connect(options) as client:
        require_cluster(state.begun.cluster_id, client.view([]).cluster_id)
        ongoing = list_reassignments(client)
    if is_held(RealHeldFiles(), path):
        notify(f"{state.writer or 'another process'} is executing it, and would be asked to")
    rows = [
        _row(change.name, change.old_replicas, MOVING)
        for change in state.begun.changes
        if change.name in ongoing and ongoing[change.name].target == change.new_replicas
    ]
    if state.ours and not state.is_returned:
        notify("its throttles would be brought back to those of before")
    write_rows(CANCEL_COLUMNS, rows, output)
    return exits.CHANGES_PENDING


def cancel_journal(options: ClusterOptions, path: str, *, yes: bool, output: str | None) -> int:
    """Cancel an execution by its journal: revert moves and throttles; returns the exit code.

    Asks for confirmation. If another process executes the journal, it gets a request to cancel, and
    this one waits. `output` None prints no rows.
    """
    state = read_journal_state(path)
    if state.is_over:
        notify(f"{path}: it is over already; `kctl reassign rollback {path}` goes back")
        return exits.OK
    with connect(options) as client:
        require_cluster(state.begun.cluster_id, client.view([]).cluster_id)
        prompt = f"cancel the moves of {path}, of {cluster_named(client)}"
        confirm(prompt, yes=yes)
        while True:
            try:
                journal, state = MoveJournal.reopen(RealHeldFiles(), path, identify_process())
            except JournalHeld as held:
                over = _request_cancel_of_holder(client, held)
                if over is not None:
                    return _print_results_of_other(over, path, output)
                # The process was killed: take the journal over and cancel.
                continue
            if state.is_over:
                journal.close()
                return _print_results_of_other(state, path, output)
            return run_execution(client, journal, output, is_cancel=True)


def _request_cancel_of_holder(client: KafkaClient, held: JournalHeld) -> JournalState | None:
    """Request a cancel from the process that holds a journal, and wait until it releases it.

    Returns the final state, None if the process was killed before it wrote an end. Errors:
    CancelNotHonoured if the process has not noted the request within the client's time-out.
    """
    files, path = RealHeldFiles(), held.path
    request_cancel(files, path, identify_process())
    notify(f"{held.writer or 'another process'} is executing it: asked to cancel its moves")
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    while is_held(files, path):
        is_answered = read_journal(files, path).is_cancelling
        if not is_answered and client.clock.monotonic_ms() > deadline_ms:
            raise CancelNotHonoured(path, held.writer, client.timeout_ms)
        client.connections.pause(_POLL_MS)
    state = read_journal(files, path)
    return state if state.is_over else None


def _print_results_of_other(state: JournalState, path: str, output: str | None) -> int:
    """Print the results of an execution that another process has ended.

    Returns the exit code: a failure if it was complete before it could be cancelled.
    """
    if state.how_over == CANCELLED:
        return print_results(state.begun.changes, state.ended, output)
    notify(f"error: it was complete before it could be cancelled (`kctl reassign rollback {path}`)")
    return print_results(state.begun.changes, state.ended, output, failures=1)
