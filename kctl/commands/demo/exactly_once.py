"""Implementation of `kctl demo exactly-once`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.cluster.plan import ClusterPlan
from engine.demo.exactly_once import (
    CheckedOutput,
    CopyPlan,
    check_brokers,
    check_output,
    fill_input,
    recreate_topics,
)
from engine.demo.instances import (
    ClusterAccess,
    CopyRun,
    InstanceTotals,
    KillSchedule,
    start_process,
)
from kctl import exits
from kctl.arguments import counted
from kctl.commands.demo.clusters import DemoCluster, demo_cluster, is_named
from kctl.connect import ClusterOptions, cluster_named
from kctl.console import confirm, notify
from kctl.render import Column, check_format, write_rows
from kctl.render.rows import OutputRow
from kctl.render.status_line import StatusLine, share_and_left

INSTANCE_COLUMNS = (
    Column("instance", "INSTANCE", right=True, is_name=True),
    Column("partitions", "PARTITIONS", kind="integer[]"),
    Column("records", "RECORDS", right=True),
    Column("committed", "COMMITTED", right=True),
    Column("aborted", "ABORTED", right=True),
    Column("kills", "KILLS", right=True),
)
_KILL_BROKERS = 3


class ExactlyOnceRequest(NamedTuple):
    """The options of `kctl demo exactly-once`."""

    partitions: int
    instances: int
    records: int
    kill: bool
    prefix: str
    yes: bool
    output: str


def run_exactly_once(options: ClusterOptions, request: ExactlyOnceRequest) -> int:
    """Show that a transactional copy by several processes copies each record once.

    Creates the topics, produces the input, copies and checks the output; returns the exit code.
    """
    check_format(request.output)
    copy = CopyPlan(request.prefix, request.partitions, request.instances, request.records)
    with (
        demo_cluster(options, _temporary_cluster_plan(request)) as cluster,
        cluster.connect() as client,
    ):
        check_brokers(client)
        if is_named(options):
            topics = f"{copy.input_topic} and {copy.output_topic}"
            what = f"Delete and create topics {topics} of {cluster_named(client)}"
            confirm(what, yes=request.yes, can_be_tried=False)
        recreate_topics(client, copy)
        _produce_input(client, copy)
        began_ms = client.clock.monotonic_ms()
        totals = _copy_with_instances(client, copy, cluster, request, options)
        took_s = (client.clock.monotonic_ms() - began_ms) / 1000
        checked = _check_output(client, copy)
    write_rows(INSTANCE_COLUMNS, [_instance_row(each, checked) for each in totals], request.output)
    return _print_verdict(checked, copy, took_s)


def _temporary_cluster_plan(request: ExactlyOnceRequest) -> ClusterPlan:
    """Return the plan of a temporary cluster; with --kill its brokers are separate processes."""
    settings = {"group.initial.rebalance.delay.ms": "500"}
    if not request.kill:
        return ClusterPlan(port=0, settings=settings)
    # With three replicas, of which two must be in sync, acknowledged records survive the kill of
    # any broker, and producers can continue.
    settings |= {"default.replication.factor": "3", "min.insync.replicas": "2"}
    return ClusterPlan(broker_count=_KILL_BROKERS, port=0, settings=settings, is_in_processes=True)


def _produce_input(client: KafkaClient, copy: CopyPlan) -> None:
    """Produce the records that the demo's instances copy, and show the progress."""
    line = StatusLine(client.clock)
    try:
        fill_input(
            client, copy, lambda count: _show_progress(line, "written", count, copy.record_count)
        )
    finally:
        line.clear()
    notify(f"{copy.input_topic} has {counted(copy.record_count, 'record')}")


def _copy_with_instances(
    client: KafkaClient,
    copy: CopyPlan,
    cluster: DemoCluster,
    request: ExactlyOnceRequest,
    options: ClusterOptions,
) -> list[InstanceTotals]:
    """Copy input to output with several processes; with --kill, some and a broker are killed.

    Returns the number of transactions and records of each process.
    """
    access = ClusterAccess(
        cluster.bootstrap_servers, cluster.properties, round(options.timeout_s * 1000)
    )
    line = StatusLine(client.clock)

    def on_strike(what: str) -> None:
        """Print what was killed, below a cleared progress line."""
        line.clear()
        notify(what)

    def on_progress(done: int, totals: Sequence[InstanceTotals]) -> None:
        """Show the number of copied records, and each process's committed transactions."""
        shares = ", ".join(f"{each.instance}: {each.committed}" for each in totals)
        _show_progress(line, f"copied, transactions {shares}", done, copy.record_count)

    strikes = None
    if request.kill:
        strikes = KillSchedule(client.entropy, cluster.temporary, on_strike)
    run = CopyRun(
        client,
        copy,
        lambda instance: start_process(copy, instance, access),
        strikes=strikes,
        stalled_ms=2 * access.timeout_ms,
    )
    try:
        run.run(on_progress)
    finally:
        line.clear()
        run.close()
    return run.totals()


def _check_output(client: KafkaClient, copy: CopyPlan) -> CheckedOutput:
    """Consume the demo's output and return missing, doubled and unordered records."""
    line = StatusLine(client.clock)
    try:
        return check_output(
            client, copy, lambda count: _show_progress(line, "checked", count, copy.record_count)
        )
    finally:
        line.clear()


def _show_progress(line: StatusLine, verb: str, count: int, total: int) -> None:
    """Show the number of processed records, their share of `total`, and the remaining time."""
    line.show(
        lambda lasting_s: ", ".join(
            [f"{count:,} records {verb}", *share_and_left(count, total, lasting_s)]
        )
    )


def _instance_row(totals: InstanceTotals, checked: CheckedOutput) -> OutputRow:
    """Return the row of an instance with the number of records that it copied."""
    return {
        **totals._asdict(),
        "partitions": list(totals.partitions),
        "records": checked.by_instance[totals.instance],
    }


def _print_verdict(checked: CheckedOutput, copy: CopyPlan, took_s: float) -> int:
    """Print whether each record was copied once and in order; return the exit code."""
    faults = checked.faults
    count = counted(copy.record_count, "record")
    if faults.is_clean:
        rate = copy.record_count / max(took_s, 0.001)
        notify(f"{count} copied, each once and in order, in {took_s:.1f} s: {rate:,.0f} records/s")
        return exits.OK
    notify(
        f"error: of {count} {faults.missing} are missing, {faults.doubled} doubled and "
        f"{faults.out_of_order} out of order in {copy.output_topic}"
    )
    return exits.PROBLEMS_FOUND
