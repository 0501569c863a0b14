"""Implementation of `kctl reassign rehearse`: copy the cluster, execute the plan on the copy."""

from __future__ import annotations

import time
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.settings import ClientSettings, parse_addresses
from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.temporary import temporary_folder
from engine.naming import ADMIN_CLIENT_ID
from engine.planner.plan import PartitionChange
from engine.planner.plan_file import PlanFile, changes_from_targets
from engine.reassign.cluster_reader import ReadCluster, read_cluster
from engine.reassign.execution import require_cluster
from engine.reassign.journal_state import ExecutionSettings
from engine.reassign.plan_reading import check_plan_is_current, in_order, order_of
from engine.rehearsal.copied_cluster import plan_copy
from engine.rehearsal.rehearsal import (
    Rehearsal,
    RehearsalEnd,
    RehearsalPorts,
    SeenStep,
    request_topic_settings,
)
from kctl import exits
from kctl.arguments import counted
from kctl.commands.reassign.files import read_plan
from kctl.connect import ClusterOptions, connect, real_host
from kctl.console import notify, report_error
from kctl.render import Column, RowWriter, check_format
from kctl.sizes import parse_bytes

REHEARSAL_COLUMNS = (
    Column("at_ms", "AT-MS", right=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("phase", "PHASE"),
    Column("old_replicas", "REPLICAS", kind="integer[]"),
    Column("new_replicas", "THEN", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
    Column("leader", "LEADER", right=True, kind="integer?"),
)


class NoSuchBroker(EngineError):
    """--kill names a broker that the cluster does not have."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.hint = "`kctl brokers list` shows them"
        super().__init__(f"the cluster has no broker {broker_id}")


class RehearseRequest(NamedTuple):
    """The options of `kctl reassign rehearse`."""

    path: str
    kill: int | None
    data_bytes: str
    moves_per_broker: int
    elects_leaders: bool
    output: str


def rehearse_plan(options: ClusterOptions, request: RehearseRequest) -> int:
    """Execute a plan on an embedded copy of the cluster, and print each step.

    The copy has the same topics and placement, with little data. Returns the exit code. Errors:
    those of the plan's file, NoSuchBroker for `--kill`, WrongCluster, StalePlan.
    """
    check_format(request.output)
    total_bytes = parse_bytes(request.data_bytes)
    plan = read_plan(request.path)
    with connect(options) as client:
        read = read_cluster(client)
        settings_of_topics = request_topic_settings(
            client, {p.topic for p in read.model.partitions}
        )
    require_cluster(plan.cluster_id, read.cluster_id)
    changes = _changes_of_plan(plan, read)
    named = {id_ for change in changes for id_ in change.new_replicas}
    copy = plan_copy(read.model, settings_of_topics, named, total_bytes)
    if request.kill is not None and request.kill not in copy.ids:
        raise NoSuchBroker(request.kill)
    settings = ExecutionSettings(
        moves_per_broker=request.moves_per_broker,
        elects_leaders=request.elects_leaders,
        batch_sizes=() if plan.plan is None else tuple(map(len, plan.plan.batches)),
        has_barriers=plan.plan is not None and order_of(plan.plan).has_barriers,
    )
    writer = RowWriter(REHEARSAL_COLUMNS, request.output)
    with temporary_folder("kctl-rehearsal-") as folder:
        rehearsal = Rehearsal(_real_ports(), f"{folder}/cluster", copy, request.kill)
        end = rehearsal.run(changes, settings, lambda step: writer.write(_step_row(step)), notify)
    writer.close()
    return _print_outcome(end, len(changes))


def _changes_of_plan(plan: PlanFile, read: ReadCluster) -> list[PartitionChange]:
    """Return a plan's changes; raises StalePlan if a partition has neither old nor new replicas."""
    if plan.plan is None:
        return changes_from_targets(read.model, plan.rows)
    changes = in_order(plan.plan)
    now = {partition.name: partition.replicas for partition in read.model.partitions}
    check_plan_is_current(changes, now)
    return changes


def _real_ports() -> RehearsalPorts:
    """Return the clock, files, pause and clients that a rehearsal uses."""
    host = real_host()

    def client_of(servers: str) -> KafkaClient:
        """Return a new administrator client of the copied cluster."""
        return KafkaClient(
            parse_addresses(servers),
            streams=host.streams,
            clock=host.clock,
            entropy=host.entropy,
            # Kafka accepts records for internal topics only from this client id.
            settings=ClientSettings(client_id=ADMIN_CLIENT_ID),
            timeout_ms=60_000,
        )

    return RehearsalPorts(
        RealHeldFiles(), host.clock, client_of, lambda pause_ms: time.sleep(pause_ms / 1000)
    )


def _step_row(step: SeenStep) -> dict[str, object]:
    """Return the row of a partition's step; `at_ms` counts from the start of the rehearsal."""
    change = step.change
    return {
        "at_ms": step.at_ms,
        "topic": change.topic,
        "partition": change.partition,
        "phase": step.phase,
        "old_replicas": list(change.old_replicas),
        "new_replicas": list(change.new_replicas),
        "isr": list(step.isr),
        "leader": step.leader,
    }


def _print_outcome(end: RehearsalEnd, count: int) -> int:
    """Print refused changes, lost records and the duration of a rehearsal.

    `count` is the number of partitions. Returns the exit code: PROBLEMS_FOUND unless all went as
    planned.
    """
    for warning in end.warnings:
        notify(f"warning: {warning}")
    for key, error in end.end.refused.items():
        report_error(error, str(key))
    for gone in end.lost:
        records = counted(gone.end_offset - gone.first_offset, "acknowledged record")
        offsets = f"offsets {gone.first_offset} to {gone.end_offset - 1}"
        notify(f"error: {gone.partition} has lost {records}: {offsets}")
    is_good = end.end.is_clean and not end.lost
    how = "as planned" if is_good else "NOT as planned"
    changes = counted(end.leader_changes, "change") + " of leaders"
    notify(
        f"{counted(count, 'partition')} {how} in {end.took_ms / 1000:.1f} s, {changes} on the way"
    )
    return exits.OK if is_good else exits.PROBLEMS_FOUND
