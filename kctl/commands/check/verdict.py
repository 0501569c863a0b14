"""Implementation of `kctl check`: collect facts, derive findings, print rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.fact_gathering import gather_facts
from engine.client.findings import (
    CRITICAL,
    KINDS,
    NOTICE,
    SEVERITIES,
    ClusterFacts,
    HealthFinding,
    findings_of,
)
from engine.client.metadata import topic_failure
from engine.client.reader_findings import ReaderThresholds, reader_findings
from engine.client.reader_gathering import gather_reader_facts
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.check.folding import FindingRow, fold_rows
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.durations import parse_duration_ms
from kctl.render import Column, check_format, write_rows
from kctl.render.table import size_text
from kctl.state_nodes import StateNodes

MOVE_FIELDS = (
    Column("original", "REPLICAS", kind="integer[]"),
    Column("target", "THEN", kind="integer[]"),
    Column("copied_bytes", "COPIED", right=True, is_size=True),
    Column("total_bytes", "OF", right=True, is_size=True, kind="integer?"),
    Column("bytes_per_s", "RATE", right=True, kind="number?"),
    Column("left_s", "LEFT", right=True, kind="number?"),
    Column("journal", "JOURNAL", kind="string?"),
    Column("process", "PROCESS", kind="string?"),
)
FINDING_COLUMNS = (
    Column("severity", "SEVERITY"),
    Column("finding", "FINDING"),
    Column("subject", "OF", is_name=True),
    Column("since", "SINCE", kind="string?"),
    Column("cause", "CAUSE"),
    Column("move", "MOVE", wide=True, kind="object?", fields=MOVE_FIELDS),
)
#: Pause between two checks of --wait.
_PERIOD_S = 0.5
#: Time-out of one check of --wait: an unresponsive broker must not use up the complete time.
_CHECK_S = 10.0
#: Share of a check's time that is reserved for the metadata store and the exit of the process.
_STORE_SHARE = 0.25
_END_SHARE = 0.05
#: Kinds of findings that a move causes and that disappear when it ends.
_OF_MOVES = ("move", "throttle")

if TYPE_CHECKING:
    from engine.reassign.known_journals import KnownMove


class CheckRequest(NamedTuple):
    """The options of `kctl check`; `topics` None means every topic."""

    topics: list[str] | None
    ignored: list[str]
    strict: bool
    wait: bool
    moves: bool
    zookeeper: str | None
    output: str
    idle_transaction: str
    group_lag: int

    def thresholds(self) -> ReaderThresholds:
        """Return the limits above which a group's lag or an open transaction is a finding.

        Errors: UnreadableArgument.
        """
        return ReaderThresholds(
            parse_duration_ms(self.idle_transaction, "--idle-transaction"), self.group_lag
        )


class CheckResult(NamedTuple):
    """The result of a check: findings, times of the last ISR changes, owners of moves."""

    findings: Sequence[HealthFinding]
    since: Mapping[str, str]
    owners: Mapping[TopicPartition, KnownMove]


def check_cluster(options: ClusterOptions, request: CheckRequest) -> int:
    """Print what is wrong with a cluster (`kctl check`); return exit code 4 if one is a problem.

    With `--wait`, the check is repeated until no problem is left.
    """
    check_format(request.output)
    for kind in request.ignored:
        if kind not in KINDS:
            raise UnreadableArgument("a finding", kind, ", ".join(KINDS))
    request.thresholds()
    result = (
        _check_until_solved(options, request) if request.wait else _check_once(options, request)
    )
    rows = [FindingRow(one, finding_row(one, result)) for one in result.findings]
    shown = fold_rows(rows) if request.output == "table" else [one.row for one in rows]
    write_rows(FINDING_COLUMNS, shown, request.output)
    if not rows:
        notify("nothing is wrong")
    elif len(shown) < len(rows):
        notify(f"{len(rows)} findings, those of one cause in one row; -o wide shows each")
    return exits.PROBLEMS_FOUND if _counted_findings(result, request) else exits.OK


def _check_until_solved(options: ClusterOptions, request: CheckRequest) -> CheckResult:
    """Check periodically until no problem that `--wait` waits for is left or `--timeout` ends.

    Returns the last result. If the cluster is unreachable in between, it is checked again, too.
    """
    deadline_s = time.monotonic() + options.timeout_s
    while True:
        left_s = max(deadline_s - time.monotonic(), _PERIOD_S)
        try:
            result = _check_once(options._replace(timeout_s=min(left_s, _CHECK_S)), request)
        except EngineError as error:
            is_unreachable = getattr(error, "exit_code", exits.FAILED) == exits.UNREACHABLE
            if not is_unreachable or _is_late(deadline_s):
                raise
        else:
            if not _awaited_findings(result, request) or _is_late(deadline_s):
                return result
        time.sleep(_PERIOD_S)


def _is_late(deadline_s: float) -> bool:
    """Return True if a pause and another check would end after the deadline (monotonic s)."""
    return time.monotonic() + 2 * _PERIOD_S > deadline_s


def _move_owners(cluster_id: str | None) -> Mapping[TopicPartition, KnownMove]:
    """Return which journal and process moves each partition, by the journals of this machine.

    A reassignment that another machine started is missing.
    """
    from kctl.commands.reassign.files import known_journals

    return known_journals().read_moves(cluster_id)


def _counted_findings(result: CheckResult, request: CheckRequest) -> list[HealthFinding]:
    """Return the findings that cause exit code 4.

    Notices count only with --strict, those on reassignments also with --moves.
    """
    return [
        one
        for one in result.findings
        if request.strict or one.severity != NOTICE or (request.moves and one.kind == "move")
    ]


def _awaited_findings(result: CheckResult, request: CheckRequest) -> list[HealthFinding]:
    """Return the problems that must disappear before `--wait` ends.

    Without --moves, while a reassignment runs, the kinds of findings that a reassignment causes do
    not count.
    """
    problems = _counted_findings(result, request)
    if request.moves or not any(one.kind == "move" for one in result.findings):
        return problems
    return [one for one in problems if one.kind not in _OF_MOVES]


def _check_once(options: ClusterOptions, request: CheckRequest) -> CheckResult:
    """Read the cluster's state once, within --timeout; return the findings, the worst first.

    Errors: those of `connect`, and of a topic that does not exist.
    """
    began_s = time.monotonic()
    with connect(options) as client:
        gathering_s = options.timeout_s * (1 - _STORE_SHARE)
        facts = gather_facts(client, request.topics, max(round(gathering_s * 1000), 1))
        for topic in facts.view.topics.values():
            failure = topic_failure(facts.view, topic.name) if topic.error_code else None
            if failure is not None:
                raise failure
        readers = _reader_findings(client, facts, request, began_s + options.timeout_s)
        found = [*findings_of(facts), *readers]
        end_s = began_s + options.timeout_s * (1 - _END_SHARE)
        since, of_store = _isr_times_and_store_findings(client, request, found, end_s)
        owners = _move_owners(facts.view.cluster_id) if facts.moves else {}
    found = sorted([*of_store, *found], key=lambda one: SEVERITIES.index(one.severity))
    return CheckResult([one for one in found if one.kind not in request.ignored], since, owners)


def _reader_findings(
    client: KafkaClient, facts: ClusterFacts, request: CheckRequest, end_s: float
) -> list[HealthFinding]:
    """Return the findings on consumers: lag, and transactions that block them.

    The requests end after half of the time until `end_s`, in s of the monotonic clock, so that time
    for the metadata store is left.
    """
    left_ms = max(round((end_s - time.monotonic()) * 1000), 0)
    deadline_ms = client.clock.monotonic_ms() + left_ms // 2
    thresholds = request.thresholds()
    of_readers = gather_reader_facts(client, facts.view, facts.silent, thresholds, deadline_ms)
    return list(reader_findings(of_readers, thresholds))


def _isr_times_and_store_findings(
    client: KafkaClient, request: CheckRequest, found: Sequence[HealthFinding], end_s: float
) -> tuple[dict[str, str], list[HealthFinding]]:
    """Return the times of the last ISR changes, by partition, and findings on the metadata store.

    The store is read if a finding concerns an ISR or a failed request, and always if an option
    names it. The read ends by `end_s` of the monotonic clock.
    """
    partitions = [one.partition for one in found if one.partition is not None]
    is_in_doubt = any(one.kind in ("unasked", "no-controller", "unreachable") for one in found)
    if not (partitions or is_in_doubt or request.zookeeper):
        return {}, []
    # Import kazoo before the time of the store's requests starts.
    import engine.znode.kazoo_reader  # noqa: F401

    nodes = StateNodes.of(client, request.zookeeper, max(end_s - time.monotonic(), 0.001))
    try:
        if partitions:
            return nodes.since(partitions), []
        nodes.check_reachable()
    except EngineError as error:
        if getattr(error, "exit_code", exits.FAILED) == exits.USAGE:
            raise
        if getattr(error, "exit_code", exits.FAILED) != exits.UNREACHABLE:
            report_error(error)
            return {}, []
        cause = f"no leader is elected, no topic changes: {error}"
        return {}, [HealthFinding(CRITICAL, "store", "metadata store", cause)]
    return {}, []


def finding_row(finding: HealthFinding, result: CheckResult) -> dict[str, object]:
    """Return the output row of a finding.

    `since` is the time of the partition's last ISR change. A finding on a reassignment has its
    progress, and the journal and process that perform it, if known.
    """
    move, cause = finding.move, finding.cause
    row: dict[str, object] = {
        "severity": finding.severity,
        "finding": finding.kind,
        "subject": finding.subject,
        "since": None if finding.partition is None else result.since.get(finding.subject),
        "cause": cause,
        "move": None,
    }
    if move is None:
        return row
    owner = next((o for key, o in result.owners.items() if str(key) == finding.subject), None)
    process = None if owner is None or owner.process is None else str(owner.process)
    row["move"] = {
        **move._asdict(),
        "original": list(move.original),
        "target": list(move.target),
        "journal": None if owner is None else owner.journal,
        "process": process,
    }
    parts = [cause]
    if move.bytes_per_s is not None:
        parts.append(f"{size_text(round(move.bytes_per_s))}/s")
    if move.left_s:
        parts.append(f"{move.left_s:,.0f} s left")
    row["cause"] = ", ".join(parts) + f"; {_owner_text(owner)}"
    return row


def _owner_text(owner: KnownMove | None) -> str:
    """Return the owner of a reassignment as text; None means that no local journal has it."""
    if owner is None:
        return "of another client: no journal of this machine has it"
    if owner.process is None:
        return f"ours, no process executes it: `kctl reassign resume {owner.journal}`"
    return f"ours, by {owner.journal}: {owner.process}"
