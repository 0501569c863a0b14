"""Implementation of `kctl reassign status` and `verify`: print the state of moves."""

from __future__ import annotations

import time
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.health import request_throttles
from engine.client.reassignments import OngoingReassignment, list_reassignments
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.planner.plan_file import TargetRow
from engine.reassign.execution import require_cluster
from engine.reassign.live_cluster import LiveCluster, ObservedCluster
from engine.reassign.phases import AT_WORK, ENDED, MovePhase, copied_bytes, phase_of
from engine.reassign.plan_reading import in_order, ongoing_changes
from kctl import exits
from kctl.arguments import counted
from kctl.commands.reassign.files import read_plan_or_journal
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.render import Column, RowWriter, check_format
from kctl.render.rows import OutputRow

STATUS_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("phase", "PHASE"),
    Column("original", "ORIGINAL", kind="integer[]"),
    Column("target", "TARGET", kind="integer[]"),
    Column("adding", "ADDING", kind="integer[]"),
    Column("removing", "REMOVING", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
    Column("leader", "LEADER", right=True, kind="integer?"),
    Column("copied_bytes", "COPIED", right=True, is_size=True),
    Column("total_bytes", "OF", right=True, is_size=True),
)
#: Note for a plan without old replicas, which then come from the controller.
ORDER_UNKNOWN = (
    "note: the controller does not keep the order of ORIGINAL while replicas move: which of them"
    " was preferred is known to the plan or journal alone"
)
#: Interval of --watch, short enough to show the phases of a longer move.
_PERIOD_S = 0.1


class Watched(NamedTuple):
    """The changes to show; `is_all` also includes moves that start later."""

    changes: list[PartitionChange]
    is_all: bool


def show_status(options: ClusterOptions, path: str | None, *, watch: bool, output: str) -> int:
    """Print the progress of reassignments, repeatedly with `watch` until all have ended.

    `path` is a plan or journal; None means all of the cluster. Returns the exit code.
    """
    check_format(output)
    writer = RowWriter(STATUS_COLUMNS, output)
    seen: dict[TopicPartition, dict[str, object]] = {}
    with connect(options) as client:
        watched = _changes_to_watch(client, path)
        while True:
            rows = _read_rows(client, watched)
            for row in rows:
                key = TopicPartition(row["topic"], row["partition"])
                if seen.get(key) != row:
                    seen[key] = row
                    writer.write(row)
            if not watch or all(MovePhase(row["phase"]) in ENDED for row in rows):
                break
            time.sleep(_PERIOD_S)
            if watched.is_all:
                watched = _following(client, watched)
    writer.close()
    if not seen:
        notify("nothing moves")
    elif path is None and any(row["removing"] for row in seen.values()):
        notify(ORDER_UNKNOWN)
    return exits.OK


def _changes_to_watch(client: KafkaClient, path: str | None) -> Watched:
    """Return the changes of a plan or journal; for None the cluster's current reassignments."""
    if path is None:
        ongoing = list_reassignments(client)
        view = client.view({key.topic for key in ongoing})
        return Watched(ongoing_changes(view, ongoing), is_all=True)
    return Watched(read_changes(client, path), is_all=False)


def _following(client: KafkaClient, watched: Watched) -> Watched:
    """Return the watched changes, and those that have started since."""
    known = {change.name for change in watched.changes}
    more = [
        change for change in _changes_to_watch(client, None).changes if change.name not in known
    ]
    return Watched([*watched.changes, *more], is_all=True)


def read_changes(client: KafkaClient, path: str) -> list[PartitionChange]:
    """Return the changes of the plan or journal at `path`.

    A plan of Kafka's tool has no old replicas: those of the cluster are taken. Errors:
    WrongCluster, those of the file.
    """
    plan, journal = read_plan_or_journal(path)
    cluster_id = client.view([]).cluster_id
    if journal is not None:
        require_cluster(journal.begun.cluster_id, cluster_id)
        return list(journal.begun.changes)
    assert plan is not None
    require_cluster(plan.cluster_id, cluster_id)
    if plan.plan is not None:
        return in_order(plan.plan)
    view = client.view({row.topic for row in plan.rows})
    ongoing = list_reassignments(client, [row.name for row in plan.rows])
    changes = []
    for row in plan.rows:
        partition, move = view.partition(row.name), ongoing.get(row.name)
        now = row.replicas if partition is None else partition.replicas
        old = now if move is None else move.original
        leader = partition.leader if partition is not None and partition.has_leader else None
        changes.append(_change_from_target(row, old, leader))
    return changes


def _change_from_target(
    row: TargetRow, old: tuple[int, ...], leader: int | None
) -> PartitionChange:
    """Return the change from the replicas `old` to those of a plan's row.

    Its new leader is the first replica. `leader` is the current one, None if there is none.
    """
    return PartitionChange(
        row.topic,
        row.partition,
        old,
        row.replicas,
        leader,
        row.replicas[0],
        old_log_dirs=("any",) * len(old) if row.log_dirs else (),
        new_log_dirs=row.log_dirs,
    )


def _read_rows(client: KafkaClient, watched: Watched) -> list[OutputRow]:
    """Request the state of the watched partitions, and return a row for each."""
    if not watched.changes:
        return []
    now = LiveCluster(client, watched.changes).read()
    return [_move_row(change, now) for change in watched.changes]


def _move_row(change: PartitionChange, now: ObservedCluster) -> OutputRow:
    """Return the row of a partition's reassignment: phase and progress."""
    key = change.name
    partition, ongoing = now.partitions.get(key), now.ongoing.get(key)
    replicas = now.replicas.get(key, {})
    copied, total = (0, 0) if partition is None else copied_bytes(change, partition, replicas)
    return {
        "topic": key.topic,
        "partition": key.partition,
        "phase": phase_of(change, partition, ongoing, replicas).value,
        "original": list(_original(change, ongoing)),
        "target": list(change.new_replicas),
        "adding": [] if ongoing is None else list(ongoing.adding),
        "removing": [] if ongoing is None else list(ongoing.removing),
        "isr": [] if partition is None else list(partition.isr),
        "leader": partition.leader if partition is not None and partition.has_leader else None,
        "copied_bytes": copied,
        "total_bytes": total,
    }


def _original(change: PartitionChange, ongoing: OngoingReassignment | None) -> tuple[int, ...]:
    """Return the replicas before the reassignment, in the plan's order if it has the same ones.

    During the reassignment the controller lists them after the target replicas, in another order.
    """
    if ongoing is None or set(ongoing.original) == set(change.old_replicas):
        return change.old_replicas
    return ongoing.original


def verify_plan(options: ClusterOptions, path: str, output: str) -> int:
    """Print whether each partition of a plan has the planned replicas, and throttles that remain.

    Returns exit code 4 unless all partitions have them.
    """
    check_format(output)
    with connect(options) as client:
        watched = Watched(read_changes(client, path), is_all=False)
        rows = _read_rows(client, watched)
        view = client.brokers_view()
        topics = sorted({change.topic for change in watched.changes} & set(view.topics))
        throttles = request_throttles(client, topics, sorted(view.brokers))
    writer = RowWriter(STATUS_COLUMNS, output)
    for row in rows:
        writer.write(row)
    writer.close()
    for throttle in throttles:
        notify(f"throttle: {throttle.setting}={throttle.value} of {throttle.kind} {throttle.name}")
    phases = [MovePhase(row["phase"]) for row in rows]
    done = sum(phase is MovePhase.DONE for phase in phases)
    moving = sum(phase in AT_WORK for phase in phases)
    notify(f"{done} of {counted(len(rows), 'partition')} as planned, {moving} on the way")
    return exits.OK if done == len(rows) else exits.PROBLEMS_FOUND
