"""Implementation of `kctl reassign execute` and `resume`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from engine.client.blocking import KafkaClient
from engine.errors import EngineError, StorageError
from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import identify_process
from engine.host.real import RealClock
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.planner.plan_file import PlanFile, changes_from_targets
from engine.reassign.adaptive_rate import FIRST_RATE
from engine.reassign.cluster_reader import read_cluster
from engine.reassign.execution import (
    CANCELLED,
    Execution,
    ExecutionEnd,
    require_cluster,
)
from engine.reassign.journal import MoveJournal, is_held, require_free
from engine.reassign.journal_state import (
    Begun,
    ExecutionSettings,
    SettingsChange,
    read_journal,
)
from engine.reassign.live_cluster import LiveCluster
from engine.reassign.phases import MovePhase
from engine.reassign.plan_reading import check_plan_is_current, in_order, order_of
from engine.reassign.throttles import ThrottleRates
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.reassign.change import change_execution, throttle_of
from kctl.commands.reassign.files import known_journals, read_journal_state, read_plan
from kctl.commands.reassign.plan import CHANGE_COLUMNS, change_row, report_unmet
from kctl.commands.reassign.preflight import log_dir_moves_text, require_possible
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.console import confirm, notify, report_error
from kctl.options.moves import MoveOptions
from kctl.render import Column, check_format, write_rows
from kctl.render.table import size_text
from kctl.sizes import parse_bytes

END_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("old_replicas", "REPLICAS", kind="integer[]"),
    Column("new_replicas", "THEN", kind="integer[]"),
    Column("result", "RESULT"),
)


class UnusedLatencyTopic(EngineError):
    """--latency-topic is given, but the throttle is not `auto`."""

    exit_code = exits.USAGE

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hint = "add `--throttle auto`, or leave --latency-topic out"
        super().__init__(f"--latency-topic {topic}: the throttle is not `auto`")


def execution_settings(
    moves: MoveOptions, plan: ReassignmentPlan | None = None
) -> ExecutionSettings:
    """Return how reassignments are executed: throttles, limits, and batches of `plan` if given.

    Errors: UnreadableArgument, UnusedLatencyTopic.
    """
    is_adaptive = moves.throttle == "auto"
    if moves.latency_topic is not None and not is_adaptive:
        raise UnusedLatencyTopic(moves.latency_topic)
    rates = ThrottleRates(
        FIRST_RATE if is_adaptive else _rate_of(moves.throttle), _rate_of(moves.log_dirs_throttle)
    )
    return ExecutionSettings(
        rates,
        is_adaptive,
        latency_topic=moves.latency_topic,
        moves_per_broker=moves.moves_per_broker,
        is_paused_under_min_isr=not moves.no_pause,
        elects_leaders=not moves.no_election,
        batch_sizes=() if plan is None else tuple(map(len, plan.batches)),
        has_barriers=plan is not None and order_of(plan).has_barriers,
    )


def _rate_of(text: str | None) -> int | None:
    """Return a throttle in bytes per second, None for no throttle; `text` is not `auto`."""
    return None if text in (None, "none") else parse_bytes(text)


def execute_plan(
    options: ClusterOptions, path: str, journal: str | None, moves: MoveOptions
) -> int:
    """Check a plan file, ask for confirmation, and execute it; returns the exit code.

    `journal` None stores the progress next to the plan.
    """
    check_format(moves.output)
    plan = read_plan(path)
    settings = execution_settings(moves, plan.plan)
    journal_path = journal or f"{path}.journal"
    # Report a journal in use before checks that would report its moves as conflicts.
    require_free(RealHeldFiles(), journal_path)
    with connect(options) as client:
        changes, cluster_id = _remaining_changes(client, plan)
        if plan.plan is not None:
            report_unmet(plan.plan.unmet)
        if not changes:
            notify("the plan is carried out already")
            return end_with(END_COLUMNS, [], moves.output)
        require_possible(
            client,
            changes,
            settings,
            is_dry_run=moves.dry_run,
            ignores_room=moves.ignore_free_space,
        )
        if moves.dry_run:
            write_rows(CHANGE_COLUMNS, [change_row(c, 1) for c in changes], moves.output)
            return exits.CHANGES_PENDING
        confirm(execution_prompt(client, changes), yes=moves.yes)
        begun = Begun(cluster_id, tuple(changes), settings)
        return begin_execution(client, journal_path, begun, moves.output)


def _remaining_changes(
    client: KafkaClient, plan: PlanFile
) -> tuple[list[PartitionChange], str | None]:
    """Return the changes of a plan, empty if the cluster has all of them, and the cluster id.

    Errors: for a plan of another cluster, and for one whose partitions have changed since.
    """
    read = read_cluster(client)
    require_cluster(plan.cluster_id, read.cluster_id)
    if plan.plan is None:
        return changes_from_targets(read.model, plan.rows), read.cluster_id
    changes = in_order(plan.plan)
    now = {partition.name: partition.replicas for partition in read.model.partitions}
    check_plan_is_current(changes, now)
    done = [c for c in changes if now[c.name] == c.new_replicas and not c.log_dir_moves]
    return (changes if len(done) < len(changes) else []), read.cluster_id


def execution_prompt(client: KafkaClient, changes: Sequence[PartitionChange]) -> str:
    """Return the question before an execution: how much is copied, in which cluster."""
    moves = sum(len(change.added) for change in changes)
    size = size_text(sum(change.bytes_moved for change in changes))
    what = f"{counted(len(changes), 'partition')}, {counted(moves, 'replica')} to copy, {size}"
    what += log_dir_moves_text(changes)
    return f"reassign {what}, of {cluster_named(client)}"


def begin_execution(client: KafkaClient, path: str, begun: Begun, output: str | None) -> int:
    """Execute changes with a new journal at `path`, by which they can be resumed or cancelled.

    Returns the exit code. `output` None prints no rows.
    """
    if begun.settings.latency_topic is not None:
        client.view_of_existing([begun.settings.latency_topic])
    journal = MoveJournal.create(RealHeldFiles(), path, begun, identify_process())
    try:
        known_journals().register(path)
    except StorageError as error:
        notify(f"warning: `kctl check` will not know that the moves are ours: {error}")
    notify(f"journal: {path}")
    return run_execution(client, journal, output)


def resume_journal(
    options: ClusterOptions,
    path: str,
    throttle: str | None,
    moves_per_broker: int | None,
    output: str,
    *,
    ignores_room: bool = False,
) -> int:
    """Resume the execution of a journal with new settings, if given; returns the exit code.

    A running process that holds the journal is sent the new settings, and continues if it is
    paused; `resume_execution` raises JournalHeld if it is not paused and nothing changes. If that
    process has ended, this one executes what remains. A finished execution stays as it is.
    `ignores_room` skips the check for free disk space.
    """
    check_format(output)
    change = SettingsChange(moves_per_broker=moves_per_broker, is_paused=False)
    if throttle is not None:
        change = throttle_of(throttle)._replace(moves_per_broker=moves_per_broker, is_paused=False)
    state = read_journal_state(path)
    if state.is_over:
        notify(f"{path}: it is over already")
        return exits.OK
    is_at_work = is_held(RealHeldFiles(), path)
    if is_at_work and (state.paused_by is not None or change != SettingsChange(is_paused=False)):
        return change_execution(path, change, options.timeout_s)
    with connect(options) as client:
        return resume_execution(client, path, change, output, ignores_room=ignores_room)


def resume_execution(
    client: KafkaClient,
    path: str,
    change: SettingsChange,
    output: str | None,
    *,
    ignores_room: bool,
) -> int:
    """Continue an unfinished execution, or its cancel, in this process; returns the exit code.

    Errors: JournalHeld; PlanRefused if changes not yet begun are impossible.
    """
    process = identify_process()
    journal, state = MoveJournal.reopen(RealHeldFiles(), path, process)
    try:
        require_cluster(state.begun.cluster_id, client.view([]).cluster_id)
        if not state.is_cancelled:
            require_possible(
                client,
                state.begun.changes,
                state.settings,
                is_dry_run=False,
                ignores_room=ignores_room,
                begun={*state.submitted, *state.ended},
            )
        journal.change(change, process)
    except BaseException:
        journal.close()
        raise
    return run_execution(client, journal, output, is_cancel=state.is_cancelled)


def run_execution(
    client: KafkaClient, journal: MoveJournal, output: str | None, *, is_cancel: bool = False
) -> int:
    """Execute the changes of a journal, or cancel them; show progress, print each result.

    Closes the journal at the end. Returns the exit code. `output` None prints no rows.
    """
    from kctl.commands.reassign.progress import MoveProgress

    path = journal.path
    try:
        state = read_journal(RealHeldFiles(), path)
        begun = state.begun
        cluster = LiveCluster(client, begun.changes, begun.settings.latency_topic)
        execution = Execution(cluster, RealClock(), journal, state)
        with MoveProgress() as progress:
            end = (execution.cancel if is_cancel else execution.run)(progress.show)
    except KeyboardInterrupt:
        goes_on = (
            f"the moves continue; `kctl reassign resume {path}` follows them, `cancel` cancels them"
        )
        if is_cancel:
            goes_on = f"not all moves are cancelled: `kctl reassign cancel {path}` continues"
        notify(goes_on)
        raise
    except EngineError:
        _print_unfinished(path)
        raise
    finally:
        journal.close()
    failures = _print_deviations(end, path)
    if end.cancelled_by is not None and not is_cancel:
        notify(f"error: cancelled before it was complete: {end.cancelled_by} asked for that")
        failures += 1
    return print_results(begun.changes, end.how_ended, output, failures=failures)


def _print_unfinished(path: str) -> None:
    """Print how to resume an execution that an error has ended.

    Prints nothing if it is over, or has changed nothing.
    """
    with suppress(EngineError):
        state = read_journal(RealHeldFiles(), path)
        if not state.is_over and not state.has_changed_nothing:
            notify(
                f"it is not over: `kctl reassign resume {path}` goes on with it,"
                " `cancel` takes back what moves, and its throttles"
            )


def _print_deviations(end: ExecutionEnd, path: str) -> int:
    """Print what did not happen as planned; return the number of failures.

    Those are refused changes, throttles that stay, reverted moves, a failed election.
    """
    for key, error in end.refused.items():
        report_error(error, str(key))
    for setting in end.foreign_throttles:
        notify(f"warning: {setting} was changed by another client meanwhile, and stays so")
    for setting, left in end.left_throttles.items():
        notify(f"error: {setting} is still throttled: {left}")
    if end.left_throttles:
        notify(f"hint: once that broker is alive, `kctl reassign resume {path}` takes it away")
    for key in end.taken_back:
        notify(f"error: {key}: its move was cancelled by another client before it was complete")
    if end.taken_back:
        notify(
            f"hint: nothing more was begun; `kctl reassign resume {path}` asks for what is left"
            " again, `cancel` ends it, `rollback` brings back what is done"
        )
    if end.still_moving:
        notify(
            f"hint: throttles stay with what still moves; `kctl reassign cancel {path}` tries again"
        )
    if end.election_error is not None:
        report_error(end.election_error, "preferred leaders are not elected")
        notify("hint: all moves are over; `kctl leaders elect` has them elected")
    is_unelected = end.election_error is not None
    return len(end.refused) + len(end.left_throttles) + len(end.taken_back) + is_unelected


def print_results(
    changes: Sequence[PartitionChange],
    how_ended: Mapping[TopicPartition, str],
    output: str | None,
    *,
    failures: int = 0,
) -> int:
    """Print a row for each change that has ended, and errors; return the exit code.

    A change that is neither done nor cancelled counts as a failure, in addition to `failures`.
    `output` None prints errors only.
    """
    rows = [_result_row(change, how) for change in changes if (how := how_ended.get(change.name))]
    bad = [row for row in rows if row["result"] not in (MovePhase.DONE.value, CANCELLED)]
    for row in bad:
        notify(
            f"error: {row['topic']}-{row['partition']} is {row['result']}: not as the plan wants it"
        )
    failures += len(bad)
    if output is not None:
        write_rows(END_COLUMNS, rows, output, failures=0 if rows else failures)
    return exits.FAILED if failures else exits.OK


def _result_row(change: PartitionChange, how: str) -> dict[str, object]:
    """Return the row of a change with its result."""
    return {
        "topic": change.topic,
        "partition": change.partition,
        "old_replicas": list(change.old_replicas),
        "new_replicas": list(change.new_replicas),
        "result": how,
    }
