"""Implementation of `kctl compact status` and `run`: requests to embedded brokers' cleaners."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.cluster import daemon
from engine.cluster.broker_processes import BrokerState
from engine.cluster.data_directory import DataDirectory
from engine.cluster.requests import request_compaction
from engine.errors import EngineError
from engine.host.real import RealClock, RealFiles
from engine.log.cleaner.compaction_state import CompactionPhase, LogCompaction
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.compact.requests import CompactRunRequest
from kctl.commands.compact.rows import (
    CLUSTER_RUN_COLUMNS,
    STATUS_COLUMNS,
    check_code,
    replica_row,
    status_row,
)
from kctl.commands.compact.topics import CompactedTopics, advised_commands, find_compacted_topics
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.render import RowWriter, check_format
from kctl.render.rows import OutputRow
from kctl.render.status_line import StatusLine, share_and_left
from kctl.render.table import size_text
from kctl.run_location import ConflictingRunOptions, find_embedded_cluster

#: Seconds between two requests for the progress of a cleaning.
_PERIOD_S = 0.25
_AT_WORK = (CompactionPhase.WAITING, CompactionPhase.CLEANING)
#: Maximum number of topics for which commands are printed.
_ADVISED_MAX = 5


class CleanedReplica(NamedTuple):
    """A replica: a partition and the broker that has it."""

    name: TopicPartition
    broker_id: int


Replicas = dict[CleanedReplica, LogCompaction]


class CleanerStateUnavailable(EngineError):
    """Kafka's protocol has no request for the state of a broker's log cleaner."""

    hint = (
        "`kctl compact plan` estimates what may be cleaned, with --exact from its records; on a "
        "broker's machine `kctl compact plan --dir` reads its checkpoints, also while it runs; "
        "its metrics are kafka.log:type=LogCleaner and LogCleanerManager"
    )

    def __init__(self) -> None:
        super().__init__("no request returns how far the cleaners of Kafka's brokers are")


class CleanerNotControllable(EngineError):
    """Kafka's protocol has no request to clean a log."""

    def __init__(self) -> None:
        super().__init__("no request makes a broker of Kafka clean a log now")
        self.hint = (
            "a cleaner takes a log once its dirty part is more than min.cleanable.dirty.ratio of "
            "it, or older than max.compaction.lag.ms; never its active segment, which segment.ms "
            "and segment.bytes end; `kctl compact plan` shows what each log waits for"
        )


class CleanStatusRequest(NamedTuple):
    """The options of `kctl compact status`."""

    topics: list[str]
    match: str | None
    watch: bool
    check: bool
    output: str


def read_leaders_logs(client: KafkaClient) -> Mapping[TopicPartition, LogCompaction]:
    """Return the compaction state of each leader's log; empty unless the cluster is embedded.

    Kafka's protocol has no request for it; the process of an embedded cluster is asked.
    """
    data = find_embedded_cluster(client)
    if data is None:
        return {}
    replicas = _request_compaction(client, data)
    view = client.view({key.topic for key, _ in replicas})
    leaders = {(key, p.leader) for key, _ in replicas if (p := view.partition(key)) is not None}
    return {key: log for (key, broker), log in replicas.items() if (key, broker) in leaders}


def _request_compaction(
    client: KafkaClient,
    data: DataDirectory,
    topics: Collection[str] | None = None,
    *,
    begins: bool = False,
) -> Replicas:
    """Ask an embedded cluster's process for the state of its cleaners, by replica.

    `begins` starts a cleaning first. `topics` None means every topic. Another command that sends
    requests to the process is waited for.
    """
    timeout_s = client.timeout_ms / 1000

    def pause(duration_ms: int) -> None:
        """Let the client's connections run for this time."""
        client.connections.pause(duration_ms)

    with daemon.hold_start_lock(data, RealFiles(), RealClock(), timeout_s, pause):
        states_by_broker = request_compaction(
            data, RealClock(), timeout_s, pause, topics=topics, begins=begins
        )
    return {
        CleanedReplica(TopicPartition(log.topic, log.partition), broker_id): log
        for broker_id, logs in sorted(states_by_broker.items())
        for log in logs
    }


def _print_stopped_brokers(data: DataDirectory) -> None:
    """Print a note for each broker that does not run, whose replicas are therefore missing."""
    for broker in daemon.status_as(data, data.state()).brokers:
        if broker.state is not BrokerState.RUNNING:
            notify(f"broker {broker.broker_id} is not asked: it is {broker.state.value}")


def _select_topics(replicas: Replicas, names: Collection[str] | None) -> Replicas:
    """Return the replicas of the topics `names`, sorted; those of all topics for None."""
    chosen = {key: log for key, log in replicas.items() if names is None or key.name.topic in names}
    return dict(sorted(chosen.items()))


# Status


def show_cleaner_status(options: ClusterOptions, request: CleanStatusRequest) -> int:
    """Print each replica's cleaner state; with --watch print changes until no log is due.

    Returns the exit code. Errors: CleanerStateUnavailable unless the cluster is embedded.
    """
    check_format(request.output)
    with connect(options) as client:
        data = find_embedded_cluster(client)
        if data is None:
            raise CleanerStateUnavailable
        names, failures = _named_topics(client, request)
        writer = RowWriter(STATUS_COLUMNS, request.output, is_stream=request.watch)
        seen: dict[CleanedReplica, dict[str, object]] = {}
        while True:
            replicas = _select_topics(_request_compaction(client, data), names)
            for key, log in replicas.items():
                row = status_row(key.broker_id, log)
                if seen.get(key) != row:
                    seen[key] = row
                    writer.write(row)
            if not request.watch or not any(_has_work(log) for log in replicas.values()):
                break
            writer.flush()
            time.sleep(_PERIOD_S)
        _print_stopped_brokers(data)
    writer.close()
    if not replicas:
        notify("no log is compacted")
    code = check_code(replicas.values(), is_check=request.check)
    return exits.FAILED if failures else code


def _has_work(log: LogCompaction) -> bool:
    """Return True if a log is due or being cleaned.

    --watch ends once this is false for every log.
    """
    return log.is_due or log.phase in _AT_WORK


def _named_topics(client: KafkaClient, request: CleanStatusRequest) -> tuple[set[str] | None, int]:
    """Return the compacted topics that options name or match, and the number of failed names.

    The topics are None if no option restricts them.
    """
    if not request.topics and request.match is None:
        return None, 0
    found = find_compacted_topics(client, request.topics, request.match, {})
    return set(found.configs), found.failures


# Run


def clean_cluster(options: ClusterOptions, request: CompactRunRequest) -> int:
    """Start a cleaning by the embedded cluster's cleaners, wait for its end, and print rows.

    Returns the exit code. For another cluster, the settings are printed with which its cleaners
    clean soon, and FAILED is returned.
    """
    check_format(request.output)
    _refuse_options(request)
    with connect(options) as client:
        data = find_embedded_cluster(client)
        found = find_compacted_topics(client, request.topics, request.match, {})
        if data is None:
            report_error(CleanerNotControllable())
            _print_advice(found)
            return exits.FAILED
        names = set(found.configs)
        before: Replicas = {}
        after: Replicas = {}
        if names:
            before = _select_topics(_request_compaction(client, data, names, begins=True), names)
            after = _await_cleaning(client, data, before, names)
            _print_stopped_brokers(data)
    failures = found.failures
    rows = []
    for key, log in after.items():
        if log.fault is not None:
            report_error(EngineError(log.fault), f"{key.name} on broker {key.broker_id}")
            failures += 1
        else:
            rows.append(_run_row(key, before.get(key, log), log))
    freed = sum(row["freed_bytes"] for row in rows)
    if rows or not failures:
        notify(f"{size_text(freed)} went, of {counted(len(rows), 'replica')}")
    return end_with(CLUSTER_RUN_COLUMNS, rows, request.output, failures=failures)


def _print_advice(found: CompactedTopics) -> None:
    """Print commands that make cleaners clean each topic soon, and those that undo them."""
    for topic in sorted(found.configs)[:_ADVISED_MAX]:
        soon, *back = advised_commands(topic, found.entries[topic])
        if soon:
            notify(f"to have {topic} cleaned soon: {soon}")
            notify(f"and afterwards: {' && '.join(back)}")


def _refuse_options(request: CompactRunRequest) -> None:
    """Raise ConflictingRunOptions for an option that applies to `--dir` only."""
    for given, name in (
        (request.settings, "--set"),
        (request.in_place, "--in-place"),
        (request.out, "--out"),
        (request.buffer, "--buffer"),
    ):
        if given:
            raise ConflictingRunOptions(
                f"{name} needs --dir", "a cluster cleans its logs by their settings"
            )


def _await_cleaning(
    client: KafkaClient, data: DataDirectory, before: Replicas, names: Collection[str]
) -> Replicas:
    """Wait until no replica of the topics is queued or being cleaned; return the last states.

    Shows the progress on stderr. After Ctrl-C the brokers continue, and a note is printed.
    """
    line = StatusLine(RealClock())
    replicas = before
    try:
        while any(log.phase in _AT_WORK for log in replicas.values()):
            time.sleep(_PERIOD_S)
            replicas = _select_topics(_request_compaction(client, data), names)
            line.show(partial(_progress_text, before, replicas))
    except KeyboardInterrupt:
        line.clear()
        notify("brokers go on with what they were asked for: `kctl compact status` shows how far")
        raise
    line.clear()
    return replicas


def _progress_text(before: Replicas, now: Replicas, lasting_s: float) -> str:
    """Return the progress of a cleaning as text: bytes read, rate and remaining time.

    The cleaner reads the dirty part of a log twice, for the offset map and to copy; the rest once.
    """
    requested = {key: log for key, log in before.items() if log.phase in _AT_WORK}
    done = total = ended = 0
    for key, was in requested.items():
        log = now.get(key, was)
        whole = was.cleanable_bytes + was.size_bytes
        total += whole
        if log.phase not in _AT_WORK:
            ended += 1
            done += whole
        elif log.now is not None:
            done += min(whole, log.now.done_bytes)
    parts = [
        f"cleaning: {ended} of {counted(len(requested), 'replica')}",
        f"{done / 1e6:,.1f} MB of {total / 1e6:,.1f} MB",
        f"{done / 1e6 / lasting_s:,.1f} MB/s",
        *share_and_left(done, total, lasting_s),
    ]
    return ", ".join(parts)


def _run_row(key: CleanedReplica, before: LogCompaction, after: LogCompaction) -> OutputRow:
    """Return the row of a replica with the bytes and records that the cleaning freed.

    `elapsed_ms` and `bytes_per_s` are None if it was not cleaned.
    """
    last = after.last if after.last != before.last or before.phase in _AT_WORK else None
    freed = 0 if last is None else last.before_bytes - last.after_bytes
    if last is not None and before.log_end_offset == after.log_end_offset:
        # Nothing was appended, so that the sizes cover several passes, not only the last one.
        freed = before.size_bytes - after.size_bytes
    records = 0 if last is None else last.before_records - last.after_records
    return {
        **replica_row(key.broker_id, after),
        "freed_bytes": freed,
        "freed_records": records,
        "elapsed_ms": None if last is None else last.elapsed_ms,
        "bytes_per_s": None if last is None else round(last.bytes_per_s),
    }
