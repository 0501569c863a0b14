"""What `kctl reassign execute`, `resume`, `cancel` and `rollback` do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.client.blocking import KafkaClient
from engine.client.reassignments import alter_reassignments, list_reassignments
from engine.errors import EngineError
from engine.host.real import RealClock, RealFiles
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange, ReassignmentPlan
from engine.planner.plan_file import PlanFile, changes_from_targets
from engine.reassign.adaptive_rate import FIRST_RATE
from engine.reassign.cluster_reader import read_cluster
from engine.reassign.execution import (
    Execution,
    ExecutionEnd,
    ExecutionNow,
    StalePlan,
    WrongCluster,
)
from engine.reassign.journal import Begun, ExecutionSettings, MoveJournal, read_journal
from engine.reassign.live_cluster import LiveCluster
from engine.reassign.phases import MovePhase
from engine.reassign.plan_reading import back_again, in_order, order_of
from engine.reassign.throttles import ThrottleRates
from kctl import exits
from kctl.asking import confirm, report_error, say
from kctl.commands.move_options import MoveOptions
from kctl.commands.reassign_files import read_plan
from kctl.commands.reassign_plan import CHANGE_COLUMNS, change_row
from kctl.connect import ClusterOptions, cluster_named, connect
from kctl.ending import end_with
from kctl.render import Column, check_format, write_rows
from kctl.render.table import size_text
from kctl.selection import select_partitions
from kctl.sizes import parse_bytes
from kctl.words import counted

END_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("old_replicas", "REPLICAS", kind="integer[]"),
    Column("new_replicas", "THEN", kind="integer[]"),
    Column("result", "RESULT"),
)
CANCEL_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("result", "RESULT"),
)


class LatencyOfNothing(EngineError):
    """A topic to measure by was named, but the throttle does not follow what is measured."""

    exit_code = exits.USAGE

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hint = "add `--throttle auto`, or leave --latency-topic out"
        super().__init__(f"--latency-topic {topic}: the throttle is not `auto`")


def settings_of(moves: MoveOptions, plan: ReassignmentPlan | None = None) -> ExecutionSettings:
    """Return how to execute; raises UnreadableWord, LatencyOfNothing."""
    is_adaptive = moves.throttle == "auto"
    if moves.latency_topic is not None and not is_adaptive:
        raise LatencyOfNothing(moves.latency_topic)
    throttle = str(FIRST_RATE) if is_adaptive else moves.throttle
    rates = ThrottleRates(
        None if throttle is None else parse_bytes(throttle),
        None if moves.log_dirs_throttle is None else parse_bytes(moves.log_dirs_throttle),
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


def execute_plan(
    options: ClusterOptions, path: str, journal: str | None, moves: MoveOptions
) -> int:
    """Execute a plan file; returns the exit code."""
    check_format(moves.output)
    plan = read_plan(path)
    settings = settings_of(moves, plan.plan)
    with connect(options) as client:
        changes, cluster_id = _planned(client, plan)
        if not changes:
            say("the plan is carried out already")
            return end_with(END_COLUMNS, [], moves.output)
        if moves.dry_run:
            write_rows(CHANGE_COLUMNS, [change_row(c, 1) for c in changes], moves.output)
            return exits.CHANGES_PENDING
        confirm(ask_to_execute(client, changes), yes=moves.yes)
        begun = Begun(cluster_id, tuple(changes), settings)
        return begin(client, journal or f"{path}.journal", begun, moves.output)


def _planned(client: KafkaClient, plan: PlanFile) -> tuple[list[PartitionChange], str | None]:
    """Return a plan's changes of this cluster; one of another cluster or time is refused."""
    read = read_cluster(client)
    if plan.cluster_id is not None and plan.cluster_id != read.cluster_id:
        raise WrongCluster(plan.cluster_id, read.cluster_id)
    if plan.plan is None:
        return changes_from_targets(read.model, plan.rows), read.cluster_id
    changes = in_order(plan.plan)
    now = {partition.name: partition.replicas for partition in read.model.partitions}
    stale = [c.name for c in changes if now.get(c.name) not in (c.old_replicas, c.new_replicas)]
    if stale:
        raise StalePlan(stale)
    done = [c for c in changes if now[c.name] == c.new_replicas and not c.log_dir_moves]
    return (changes if len(done) < len(changes) else []), read.cluster_id


def ask_to_execute(client: KafkaClient, changes: Sequence[PartitionChange]) -> str:
    """Return the question whether these changes shall be made."""
    moves = sum(len(change.added) for change in changes)
    size = size_text(sum(change.bytes_moved for change in changes))
    what = f"{counted(len(changes), 'partition')}, {counted(moves, 'replica')} to copy, {size}"
    return f"reassign {what}, of {cluster_named(client)}"


def begin(client: KafkaClient, path: str, begun: Begun, output: str) -> int:
    """Execute a plan with a new journal; returns the exit code."""
    if begun.settings.latency_topic is not None:
        client.view_of_existing([begun.settings.latency_topic])
    journal = MoveJournal.create(RealFiles(), path, begun)
    say(f"journal: {path}")
    return go_on(client, journal, path, output, Execution.run)


def resume_journal(options: ClusterOptions, path: str, output: str) -> int:
    """Go on with an execution; returns the exit code."""
    check_format(output)
    journal, state = MoveJournal.reopen(RealFiles(), path)
    if state.is_over:
        say(f"{path}: it is over already")
        return exits.OK
    do = Execution.cancel if state.is_cancelled else Execution.run
    with connect(options) as client:
        return go_on(client, journal, path, output, do)


def go_on(
    client: KafkaClient,
    journal: MoveJournal,
    path: str,
    output: str | None,
    do: Callable[[Execution, Callable[[ExecutionNow], None]], ExecutionEnd],
) -> int:
    """Execute what a journal has begun, show it on the way, print how each change ended."""
    from kctl.commands.reassign_progress import MoveProgress

    state = read_journal(RealFiles(), path)
    begun = state.begun
    try:
        cluster = LiveCluster(client, begun.changes, begun.settings.latency_topic)
        execution = Execution(cluster, RealClock(), journal, state)
        with MoveProgress() as progress:
            end = do(execution, progress.show)
    except KeyboardInterrupt:
        say(f"what moves goes on; `kctl reassign resume {path}` does too, `cancel` takes it back")
        raise
    finally:
        journal.close()
    return _report(begun.changes, end, path, output)


def _report(
    changes: Sequence[PartitionChange], end: ExecutionEnd, path: str, output: str | None
) -> int:
    """Print how changes ended; without an output what went wrong alone."""
    for key, error in end.refused.items():
        report_error(error, str(key))
    for setting in end.foreign_throttles:
        say(f"warning: {setting} was changed by somebody else meanwhile, and stays so")
    for setting, left in end.left_throttles.items():
        say(f"error: {setting} is still throttled: {left}")
    if end.left_throttles:
        say(f"hint: once that broker is alive, `kctl reassign resume {path}` takes it away")
    rows = [_end_row(change, how) for change in changes if (how := end.how_ended.get(change.name))]
    bad = [row for row in rows if row["result"] not in (MovePhase.DONE.value, "cancelled")]
    for row in bad:
        say(
            f"error: {row['topic']}-{row['partition']} is {row['result']}: not as the plan wants it"
        )
    failures = len(end.refused) + len(end.left_throttles) + len(bad)
    if output is not None:
        write_rows(END_COLUMNS, rows, output, failures=0 if rows else failures)
    return exits.FAILED if failures else exits.OK


def _end_row(change: PartitionChange, how: str) -> dict[str, Any]:
    return {
        "topic": change.topic,
        "partition": change.partition,
        "old_replicas": list(change.old_replicas),
        "new_replicas": list(change.new_replicas),
        "result": how,
    }


def cancel_moves(
    options: ClusterOptions, what: list[str], *, every: bool, yes: bool, output: str
) -> int:
    """Take back moves, of a journal or of the cluster; returns the exit code."""
    check_format(output)
    if len(what) == 1 and not every and RealFiles().exists(what[0]):
        return _cancel_journal(options, what[0], yes=yes, output=output)
    with connect(options) as client:
        errors: list[EngineError] = []
        keys: list[TopicPartition] | None = None
        if not every:
            _, keys, errors = select_partitions(client, _named(what))
        ongoing = list_reassignments(client)
        chosen = {
            key: ongoing[key] for key in (ongoing if keys is None else keys) if key in ongoing
        }
        for error in errors:
            report_error(error)
        if not chosen:
            say("nothing of that moves")
            return end_with(CANCEL_COLUMNS, [], output, failures=len(errors))
        count = counted(len(chosen), "partition")
        question = f"take back the moves of {count} of {cluster_named(client)}"
        confirm(question, yes=yes, can_be_tried=False)
        answers = alter_reassignments(client, dict.fromkeys(chosen))
        failures = len(errors)
        rows = []
        for key, error_or_none in answers.items():
            if error_or_none is not None:
                report_error(error_or_none, str(key))
                failures += 1
                continue
            replicas = list(chosen[key].original)
            rows.append({**key._asdict(), "replicas": replicas, "result": "cancelled"})
    say("throttles stay as they are: `kctl check` shows them")
    return end_with(CANCEL_COLUMNS, rows, output, failures=failures)


def _named(words: list[str]) -> list[str]:
    from kctl.selection import NothingNamed

    if not words:
        raise NothingNamed
    return words


def _cancel_journal(options: ClusterOptions, path: str, *, yes: bool, output: str | None) -> int:
    journal, state = MoveJournal.reopen(RealFiles(), path)
    if state.is_over:
        say(f"{path}: it is over already; `kctl reassign rollback {path}` goes back")
        return exits.OK
    with connect(options) as client:
        confirm(
            f"take back what moves by {path}, of {cluster_named(client)}",
            yes=yes,
            can_be_tried=False,
        )
        return go_on(client, journal, path, output, Execution.cancel)


def roll_back(options: ClusterOptions, path: str, moves: MoveOptions) -> int:
    """Bring back what an execution has changed; returns the exit code."""
    check_format(moves.output)
    state = read_journal(RealFiles(), path)
    settings = settings_of(moves)
    with connect(options) as client:
        if not state.is_over:
            say(f"{path} is not over: what moves is taken back first")
            code = _cancel_journal(options, path, yes=moves.yes, output=None)
            if code != exits.OK:
                return code
            _await_quiet(client, state.begun.changes)
        view = client.view({change.topic for change in state.begun.changes})
        if state.begun.cluster_id not in (None, view.cluster_id):
            raise WrongCluster(str(state.begun.cluster_id), view.cluster_id)
        found = ((c.name, view.partition(c.name)) for c in state.begun.changes)
        now = {key: partition for key, partition in found if partition is not None}
        changes = back_again(state.begun.changes, now)
        if not changes:
            say("everything is where it was before")
            return end_with(END_COLUMNS, [], moves.output)
        if moves.dry_run:
            write_rows(CHANGE_COLUMNS, [change_row(c, 1) for c in changes], moves.output)
            return exits.CHANGES_PENDING
        confirm(f"roll back: {ask_to_execute(client, changes)}", yes=moves.yes)
        begun = Begun(view.cluster_id, tuple(changes), settings)
        return begin(client, f"{path}.rollback", begun, moves.output)


def _await_quiet(client: KafkaClient, changes: Sequence[PartitionChange]) -> None:
    """Wait until nothing of a plan moves any more."""
    keys = [change.name for change in changes]
    deadline_s = time.monotonic() + client.timeout_ms / 1000
    while time.monotonic() < deadline_s and any(key in list_reassignments(client) for key in keys):
        time.sleep(0.2)
