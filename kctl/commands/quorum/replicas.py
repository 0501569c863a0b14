"""Implementation of `kctl quorum`: request the quorum, compare its replicas with the leader."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion, TimedOut
from engine.client.findings import NOTICE, HealthFinding
from engine.client.quorum_admin import QuorumView, describe_quorum
from engine.client.quorum_health import (
    QuorumHealth,
    ReplicaHealth,
    quorum_findings,
    quorum_health,
)
from engine.errors import EngineError
from engine.ids import uuid_text
from kctl import exits
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.durations import parse_duration_ms
from kctl.render import TABLES, Column, check_format, write_object, write_rows
from kctl.render.rows import OutputRow

REPLICA_COLUMNS: Final = (
    Column("node_id", "NODE", right=True, is_name=True),
    Column("role", "ROLE"),
    Column("state", "STATE"),
    Column("log_end_offset", "END", right=True, kind="integer?"),
    Column("lag", "LAG", right=True, kind="integer?"),
    Column("behind_ms", "BEHIND-MS", right=True, kind="integer?"),
    Column("last_fetch_ms", "LAST-FETCH", is_time=True, kind="integer?"),
    Column("last_caught_up_ms", "LAST-CAUGHT-UP", is_time=True, kind="integer?"),
    Column("directory_id", "DIRECTORY", wide=True, kind="string?"),
    Column("endpoints", "ENDPOINTS", wide=True, kind="string[]"),
)
FINDING_COLUMNS: Final = (
    Column("severity", "SEVERITY"),
    Column("finding", "FINDING"),
    Column("subject", "OF", is_name=True),
    Column("cause", "CAUSE"),
)
QUORUM_COLUMNS: Final = (
    Column("cluster_id", "CLUSTER", is_name=True, kind="string?"),
    Column("leader_id", "LEADER", right=True, kind="integer?"),
    Column("leader_epoch", "EPOCH", right=True),
    Column("high_watermark", "HIGH-WATERMARK", right=True),
    Column("voters", "VOTERS", right=True),
    Column("caught_up", "CAUGHT-UP", right=True),
    Column("majority", "MAJORITY", right=True),
    Column("losses_left", "LOSSES-LEFT", right=True),
    Column("replicas", "REPLICAS", kind="object[]", fields=REPLICA_COLUMNS),
    Column("findings", "FINDINGS", kind="object[]", fields=FINDING_COLUMNS),
)
_WITHIN: Final = ("replicas", "findings")
_NO_DIRECTORY: Final = bytes(16)


class NoQuorum(EngineError):
    """The cluster has no quorum, since its metadata is in ZooKeeper."""

    hint = (
        "ask `kctl brokers list` for the controller, `kctl check` for what is wrong, "
        "`kctl znode get /controller -z HOST:PORT` for its znode"
    )

    def __init__(self, controller: str) -> None:
        super().__init__(
            f"the cluster has no quorum: its metadata is in ZooKeeper, and {controller}"
        )
        self.controller = controller


class NoQuorumLeader(TimedOut):
    """A broker accepted the request, but the leader of the controllers did not respond in time."""

    hint = (
        "brokers hand this to the leader of the controllers: if `kctl brokers list` answers, there "
        "is none; start the controllers that are down. Without a majority of voters no leader or "
        "ISR changes, and the metadata that brokers show may be old"
    )


class QuorumRequest(NamedTuple):
    """The options of `kctl quorum`."""

    behind: str
    strict: bool
    output: str


class _QuorumState(NamedTuple):
    """A description of the quorum, its health, and its problems."""

    cluster_id: str | None
    quorum: QuorumView
    health: QuorumHealth
    findings: Sequence[HealthFinding]

    def exit_code(self, request: QuorumRequest) -> int:
        """Return PROBLEMS_FOUND if a finding counts as a problem, else OK.

        Notices count only with --strict.
        """
        counted = [one for one in self.findings if request.strict or one.severity != NOTICE]
        return exits.PROBLEMS_FOUND if counted else exits.OK


def describe_cluster_quorum(options: ClusterOptions, request: QuorumRequest) -> int:
    """Print a cluster's KRaft quorum, its replicas and findings; returns the exit code."""
    state = _request_quorum(options, request)
    row = _quorum_row(state)
    if request.output not in TABLES:
        write_object(QUORUM_COLUMNS, row, request.output)
    else:
        columns = [column for column in QUORUM_COLUMNS if column.key not in _WITHIN]
        write_object(columns, row, request.output)
        sys.stdout.write("\n")
        write_rows(REPLICA_COLUMNS, row["replicas"], request.output)
        if row["findings"]:
            sys.stdout.write("\n")
            write_rows(FINDING_COLUMNS, row["findings"], request.output)
    if not state.findings:
        notify("nothing is wrong")
    return state.exit_code(request)


def list_voters(options: ClusterOptions, request: QuorumRequest, *, observers: bool) -> int:
    """Print a row for each voter of the KRaft quorum, with `observers` also for each observer.

    Returns the exit code. Findings are printed on stderr.
    """
    state = _request_quorum(options, request)
    chosen = [one for one in state.health.replicas if observers or one.is_voter]
    rows = [_replica_row(one, state.quorum) for one in chosen]
    write_rows(REPLICA_COLUMNS, rows, request.output)
    for finding in state.findings:
        notify(f"{finding.severity}: {finding.subject}: {finding.cause}")
    return state.exit_code(request)


def _request_quorum(options: ClusterOptions, request: QuorumRequest) -> _QuorumState:
    """Request the KRaft quorum, and derive its health and findings.

    Errors: NoQuorum for a cluster with ZooKeeper, NoQuorumLeader if no leader responds.
    """
    check_format(request.output)
    behind_for_ms = parse_duration_ms(request.behind, "--behind")
    with connect(options) as client:
        try:
            quorum = describe_quorum(client)
        except NoCommonVersion as error:
            raise NoQuorum(_controller_text(client)) from error
        except TimedOut as error:
            raise NoQuorumLeader(error.what, error.timeout_ms) from error
        cluster_id = client.brokers_view().cluster_id
        health = quorum_health(quorum, client.clock.wall_ms(), behind_for_ms)
    return _QuorumState(cluster_id, quorum, health, quorum_findings(quorum, health))


def _controller_text(client: KafkaClient) -> str:
    """Return which broker is the controller of a ZooKeeper cluster, for an error message."""
    view = client.view([])
    controller = view.brokers.get(view.controller_id)
    if controller is None:
        return "no broker is its controller now"
    return f"its controller is broker {view.controller_id} at {controller.address}"


def _quorum_row(state: _QuorumState) -> OutputRow:
    """Return the quorum as one row, with replicas and findings nested."""
    quorum, health = state.quorum, state.health
    return {
        "cluster_id": state.cluster_id,
        "leader_id": quorum.leader_id if quorum.leader_id >= 0 else None,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": len(health.voters),
        "caught_up": health.caught_up_count,
        "majority": health.majority,
        "losses_left": health.losses_left,
        "replicas": [_replica_row(one, quorum) for one in health.replicas],
        "findings": [
            {
                "severity": one.severity,
                "finding": one.kind,
                "subject": one.subject,
                "cause": one.cause,
            }
            for one in state.findings
        ],
    }


def _replica_row(one: ReplicaHealth, quorum: QuorumView) -> OutputRow:
    """Return the row of a voter or observer; None for values that the leader does not report."""
    replica = one.replica
    has_directory = replica.directory_id != _NO_DIRECTORY
    return {
        "node_id": replica.replica_id,
        "role": "voter" if one.is_voter else "observer",
        "state": one.state,
        "log_end_offset": replica.log_end_offset if replica.log_end_offset >= 0 else None,
        "lag": one.lag,
        "behind_ms": one.behind_ms,
        "last_fetch_ms": replica.last_fetch_ms,
        "last_caught_up_ms": replica.last_caught_up_ms,
        "directory_id": uuid_text(replica.directory_id) if has_directory else None,
        "endpoints": list(quorum.endpoints.get(replica.replica_id, ())),
    }
