"""Implementation of `kctl copy`: plan, journal, topics; then records up to each partition's end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.group_admin import delete_groups
from engine.client.groups import committed_offsets
from engine.client.producing import ProducerCallbacks
from engine.client.topic_admin import create_topics
from engine.client.transactional_producer import TransactionalIdDenied, TransactionFailed
from engine.copying.copy_journal import CopyJournal, CopyState, read_copy
from engine.copying.copy_plan import EXACTLY_ONCE, TopicCopy
from engine.copying.copy_resumption import ProgressLost, find_resume_positions
from engine.copying.copy_writers import AtLeastOnceWriter, CopyWriter, ExactlyOnceWriter, NotCopied
from engine.copying.copying_run import CopyingRun, PartitionUnreadable
from engine.copying.topic_preparation import Destination
from engine.errors import ApiError, EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import identify_process
from engine.host.real import RealFiles
from engine.kafka_errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    TOPIC_AUTHORIZATION_FAILED,
)
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.copy.clusters import destination_client, fetch_cluster_ids, source_client
from kctl.commands.copy.planning import (
    AnotherCopy,
    check_destination_topics,
    create_plan,
    require_same_source,
)
from kctl.commands.copy.request import CopyRequest
from kctl.commands.topics.metadata_wait import await_created
from kctl.console import notify, report_error
from kctl.hints import hint_for
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.render import Column, check_format
from kctl.render.rate_line import RateLine
from kctl.render.rows import OutputRow

TOPIC_COLUMNS: Final = (
    Column("topic", "TOPIC", is_name=True),
    Column("destination_topic", "DESTINATION"),
    Column("partitions", "PARTITIONS", right=True),
    Column("destination_state", "TOPIC-THERE"),
    Column("offsets", "OFFSETS", right=True),
    Column("offsets_left", "LEFT", right=True),
    Column("copied_records", "COPIED", right=True),
    Column("copied_bytes", "SIZE", right=True, is_size=True),
    Column("left_out_records", "LEFT-OUT", right=True),
    Column("result", "RESULT"),
)
_WAIT_MS: Final = 1_000
_RIGHTS_OF_TRANSACTIONS: Final = (GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED)


class TopicNotCreated(EngineError):
    """The destination refused to create a topic."""

    def __init__(self, topic: str, cause: EngineError) -> None:
        super().__init__(f"creating {topic} at the destination: {cause}")
        self.hint = hint_for(cause)
        self.topic = topic
        self.exit_code = getattr(cause, "exit_code", exits.FAILED)


class _Job(NamedTuple):
    """A copy's plan, the journal's state (None for a new copy), and the destination's topics."""

    plan: TopicCopy
    state: CopyState | None
    topics: Destination


class _Ended(NamedTuple):
    """How this process's part of a copy ended."""

    positions: Mapping[TopicPartition, int]
    run: CopyingRun | None
    result: str
    exit_code: int


def copy_topics(request: CopyRequest) -> int:
    """Copy topics to another cluster, or show the plan in a dry run; returns the exit code.

    A row for each topic is printed. The journal has the state of an interrupted copy by the same
    command, which is continued.
    """
    check_format(request.output)
    request.rate_bytes_per_s()
    request.producer()
    with (
        deferred_interrupts() as interrupts,
        source_client(request) as source,
        destination_client(request) as destination,
    ):
        identity = request.identity(*fetch_cluster_ids(source, destination, request))
        path = request.journal_path(identity)
        if request.dry_run:
            return _print_plan(source, destination, request, identity, path)
        with _locked_journal(path) as (journal, state):
            job = _plan_job(source, destination, request, identity, state, path)
            ended = _run_copy(source, destination, request, job, journal, interrupts)
        return _print_result(request, job, ended)


@contextmanager
def _locked_journal(path: str) -> Iterator[tuple[CopyJournal, CopyState | None]]:
    """Lock the journal at a path for the block, and yield it with its state.

    The lock keeps another process from making the same copy. The state is None for a new journal.
    """
    RealFiles().make_dir(os.path.dirname(path) or ".")
    journal, state = CopyJournal.lock(RealHeldFiles(), path, identify_process())
    try:
        yield journal, state
    finally:
        journal.close()


def _plan_job(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    identity: str,
    state: CopyState | None,
    path: str,
) -> _Job:
    """Return the copy to carry out: the journal's unfinished one, or a new one.

    `state` is the journal's, None if it is new. With --append a new copy starts where the journal's
    last copy ended. Errors: AnotherCopy, those of `create_plan` and `check_destination_topics`.
    """
    is_same = state is not None and state.plan.request == identity
    if state is not None and not state.is_over:
        if not is_same:
            raise AnotherCopy(path)
        require_same_source(source, state.plan)
        topics = check_destination_topics(
            source, destination, request, state.plan, is_resumed=True, earlier=None
        )
        return _Job(state.plan, state, topics)
    earlier = state.plan if state is not None and is_same else None
    continued = earlier if request.append else None
    plan = create_plan(source, destination, request, identity, continued)
    topics = check_destination_topics(
        source, destination, request, plan, is_resumed=False, earlier=earlier
    )
    return _Job(plan, None, topics)


# -- dry run


def _print_plan(
    source: KafkaClient, destination: KafkaClient, request: CopyRequest, identity: str, path: str
) -> int:
    """Print the plan of a copy for a dry run; writes neither records nor a journal."""
    files = RealHeldFiles()
    state = read_copy(files, path) if files.exists(path) else None
    job = _plan_job(source, destination, request, identity, state, path)
    if job.state is not None:
        notify(f"goes on with the copy of {path}")
    create = create_topics(destination, job.topics.missing, validate_only=True)
    failures = [error for error in create.values() if isinstance(error, EngineError)]
    for error in failures:
        report_error(error)
    positions = _resume_positions(destination, job)
    rows = _topic_rows(job, _Ended(positions, None, "would be copied", exits.OK))
    for one in job.plan.translated_offsets():
        notify(f"group {one.group_id}: offset {one.offset} of {one.partition} would be translated")
    return end_with(TOPIC_COLUMNS, rows, request.output, failures=len(failures))


def _resume_positions(destination: KafkaClient, job: _Job) -> dict[TopicPartition, int]:
    """Return the source offset from which each partition would be copied, for a dry run.

    An interrupted copy continues behind the offsets that it committed; nothing is written.
    """
    plan, state = job.plan, job.state
    if state is None:
        return {key: found.start for key, found in plan.ranges.items()}
    known = state.stored
    if plan.delivery == EXACTLY_ONCE:
        # Transactions store positions as offsets of a group named as the plan.
        there = plan.destinations()
        committed = committed_offsets(destination, plan.name, there.values())
        known = {key: committed[there[key]] for key in there if there[key] in committed}
    return find_resume_positions(destination, plan, known, state.stored)


# -- copying


def _run_copy(
    source: KafkaClient,
    destination: KafkaClient,
    request: CopyRequest,
    job: _Job,
    journal: CopyJournal,
    interrupts: HeldInterrupts,
) -> _Ended:
    """Create missing topics, and copy until the end, an error or Ctrl-C.

    Errors of the copy are printed, not raised. The result has the exit code and the source offsets
    that were reached. Committed records stay at the destination.
    """
    plan = job.plan
    _create_missing_topics(destination, job.topics)
    if job.state is None:
        journal.begin(plan, identify_process())
    else:
        notify(f"going on with the copy of {journal.path}")
    writer = _create_writer(destination, request, job, journal)
    run: CopyingRun | None = None
    # Until the writer returns the true positions, an error leaves all as not copied.
    positions = {key: found.start for key, found in plan.ranges.items()}
    try:
        positions = writer.positions()
        run = CopyingRun(
            source,
            plan,
            writer,
            positions,
            request.rules,
            rate_bytes_per_s=request.rate_bytes_per_s(),
        )
        interrupt = _copy_until_done(source, plan, run, interrupts)
        if interrupt is not None:
            run.commit()
            notify(f"stopped: the same command goes on with it, by {journal.path}")
            return _Ended(run.positions, run, "interrupted", exits.interrupted(interrupt))
        run.finish()
    except EngineError as error:
        # Do not wait for an unreachable destination.
        if getattr(error, "exit_code", exits.FAILED) != exits.UNREACHABLE:
            writer.abandon()
        _print_failure(error, plan, journal.path)
        code = getattr(error, "exit_code", exits.FAILED)
        return _Ended(run.committed if run else positions, run, "failed", code)
    journal.over("complete")
    _print_groups(plan)
    _delete_progress(destination, plan)
    return _Ended(run.positions, run, "copied", exits.OK)


def _create_missing_topics(destination: KafkaClient, topics: Destination) -> None:
    """Create the topics that the destination lacks; raises the first error."""
    if not topics.missing:
        return
    for name, created in create_topics(destination, topics.missing).items():
        if isinstance(created, EngineError):
            raise TopicNotCreated(name, created)
    await_created(destination, [topic.name for topic in topics.missing])


def _create_writer(
    destination: KafkaClient, request: CopyRequest, job: _Job, journal: CopyJournal
) -> CopyWriter:
    """Return the writer for the plan's delivery, exactly once or at least once.

    It continues from the positions that the journal has stored.
    """
    notes = ProducerCallbacks(on_retry=_print_retry)
    options = request.producer()
    stored = {} if job.state is None else job.state.stored
    if job.plan.delivery == EXACTLY_ONCE:
        return ExactlyOnceWriter(destination, job.plan, journal, stored, options, notes)
    return AtLeastOnceWriter(destination, job.plan, journal, stored, options, notes)


def _copy_until_done(
    source: KafkaClient, plan: TopicCopy, run: CopyingRun, interrupts: HeldInterrupts
) -> KeyboardInterrupt | None:
    """Copy until the end, and return None; or until Ctrl-C, and return it.

    The caller then commits what was copied. A second Ctrl-C is raised at once.
    """
    total = sum(found.end - run.positions[key] for key, found in plan.ranges.items())
    line = RateLine(source.clock, total_count=total)
    is_waiting = False
    try:
        while not run.is_done:
            with interrupts.allowed():
                arrived = run.fetch(_WAIT_MS)
            run.store(arrived)
            line.update(*run.progress)
            if run.trouble is not None and not is_waiting:
                line.clear()
                notify(f"source: {run.trouble}; trying again")
            is_waiting = run.trouble is not None
    except KeyboardInterrupt as interrupt:
        if interrupts.is_urgent:
            raise
        return interrupt
    finally:
        line.clear()
    return None


def _print_retry(error: EngineError) -> None:
    """Print an error of the destination after which the producer retries."""
    notify(f"destination: {error}; trying again")


def _print_failure(error: EngineError, plan: TopicCopy, path: str) -> None:
    """Print why a copy failed, the permissions it may need, and how to continue it."""
    # Print the cause of an aborted transaction, not the abort itself.
    cause = error.cause if isinstance(error, TransactionFailed) else error
    report_error(cause, "destination" if isinstance(error, TransactionFailed) else None)
    if (
        isinstance(error, NotCopied | PartitionUnreadable)
        and not error.hint
        and hint_for(error.cause)
    ):
        notify(f"hint: {hint_for(error.cause)}")
    if _denies_transactions(cause) and plan.delivery == EXACTLY_ONCE:
        notify(
            f"hint: exactly once needs WRITE on the transactional id {plan.name}, READ on the "
            "group of that name, READ and WRITE on topics; --at-least-once needs WRITE on topics "
            "alone, and may copy records twice"
        )
    if not isinstance(error, ProgressLost):
        notify(f"what is committed stays: the same command continues after it, by {path}")


def _denies_transactions(error: EngineError) -> bool:
    """Return True if the destination refuses a permission that only transactions need.

    Then the hint names these permissions, and --at-least-once, which does without.
    """
    if isinstance(error, TransactionalIdDenied):
        return True
    return isinstance(error, ApiError) and error.code in _RIGHTS_OF_TRANSACTIONS


def _print_groups(plan: TopicCopy) -> None:
    """Print for each group in how many partitions its committed offset was translated."""
    groups: dict[str, int] = {}
    for one in plan.translated_offsets():
        groups[one.group_id] = groups.get(one.group_id, 0) + 1
    for group_id, count in groups.items():
        notify(f"group {group_id}: {counted(count, 'partition')} translated")


def _delete_progress(destination: KafkaClient, plan: TopicCopy) -> None:
    """Delete the destination's group that stored the positions of a completed copy."""
    if plan.delivery != EXACTLY_ONCE:
        return
    try:
        error: EngineError | None = delete_groups(destination, [plan.name])[plan.name]
    except EngineError as failure:
        error = failure
    if isinstance(error, ApiError) and error.code == GROUP_ID_NOT_FOUND:
        # A copy without records never created the group.
        return
    if error is not None:
        notify(f"the group {plan.name}, which had the positions of the copy, stays: {error}")


# -- the end


def _print_result(request: CopyRequest, job: _Job, ended: _Ended) -> int:
    """Print a row for each topic; return the exit code with which the copy ended."""
    failures = 1 if ended.result == "failed" else 0
    end_with(TOPIC_COLUMNS, _topic_rows(job, ended), request.output, failures=failures)
    sys.stdout.flush()
    return ended.exit_code


def _topic_rows(job: _Job, ended: _Ended) -> list[OutputRow]:
    """Return a row for each topic: its offsets, those left, the records copied, and the result.

    `ended.run` is None if nothing was copied: in a dry run, whose result begins with "would", and
    after a failure before the first record. A topic with no offset left counts as copied, even if
    the copy of another one failed.
    """
    plan, run = job.plan, ended.run
    missing = {topic.name for topic in job.topics.missing}
    rows: list[OutputRow] = []
    for topic in plan.topics:
        keys = [key for key in plan.ranges if key.topic == topic.source]
        is_made = topic.destination in missing
        made = "would be made" if run is None and ended.result.startswith("would") else "made"
        left = sum(max(plan.ranges[key].end - ended.positions[key], 0) for key in keys)
        rows.append(
            {
                "topic": topic.source,
                "destination_topic": topic.destination,
                "partitions": topic.partition_count,
                "destination_state": made if is_made else "there",
                "offsets": sum(plan.ranges[key].end - plan.ranges[key].start for key in keys),
                "offsets_left": left,
                "copied_records": 0 if run is None else sum(run.counts.records[k] for k in keys),
                "copied_bytes": 0 if run is None else sum(run.counts.size_bytes[k] for k in keys),
                "left_out_records": 0 if run is None else sum(run.counts.left_out[k] for k in keys),
                "result": ended.result if left or ended.exit_code == exits.OK else "copied",
            }
        )
    return rows
