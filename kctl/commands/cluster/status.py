"""Implementation of `kctl cluster status`."""

from __future__ import annotations

import os
import sys

from engine.cluster import daemon
from engine.cluster.broker_processes import BrokerState, BrokerStatus
from engine.cluster.daemon import ClusterStatus
from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.network_faults import read_faults
from engine.errors import EngineError
from engine.host.link_faults import encode_faults
from engine.host.real import RealFiles
from kctl import exits
from kctl.commands.cluster.lifecycle import BROKER_FIELDS, STATUS_COLUMNS, status_row
from kctl.console import notify, report_error
from kctl.embedded import cluster_path
from kctl.render import TABLES, Column, check_format, write_object, write_rows
from kctl.render.rows import OutputRow

THROTTLE_FIELDS = (
    Column("kind", "THROTTLED"),
    Column("name", "NAME", is_name=True),
    Column("setting", "SETTING"),
    Column("value", "VALUE"),
)
FAULT_FIELDS = (
    Column("kind", "FAULT"),
    Column("places", "OF"),
    Column("delay_ms", "DELAY-MS", right=True, kind="integer?"),
    Column("loss", "LOSS", right=True, kind="number?"),
)
HEALTH_COLUMNS = (
    *STATUS_COLUMNS,
    Column("controller_id", "CONTROLLER", right=True, kind="integer?"),
    Column("under_replicated", "UNDER-REPLICATED", right=True, kind="integer?"),
    Column("offline", "OFFLINE", right=True, kind="integer?"),
    Column("throttles", "THROTTLES", wide=True, kind="object[]?", fields=THROTTLE_FIELDS),
    Column("faults", "FAULTS", wide=True, kind="object[]", fields=FAULT_FIELDS),
)
#: Columns that tables print below the others, as separate tables.
_BELOW = ("brokers", "throttles", "faults")
#: Timeout of requests: local brokers respond at once unless they have a problem.
_TIMEOUT_S = 5.0


def show_status(data: str | None, output: str) -> int:
    """Print the state, health and faults of an embedded cluster.

    Returns exit code 0 if all its brokers run. `data` is its directory, None for the default.
    """
    check_format(output)
    directory = DataDirectory(RealFiles(), cluster_path(os.environ, data))
    status = daemon.status_of(directory)
    row = status_row(status) | _read_health(status) | {"faults": _fault_rows(directory, status)}
    for broker in row["brokers"]:
        if row["controller_id"] is not None:
            broker["is_controller"] = broker["broker_id"] == row["controller_id"]
    if output in TABLES:
        _print_tables(row, output)
    else:
        write_object(HEALTH_COLUMNS, row, output)
    return _print_problems(status)


def _print_tables(row: OutputRow, output: str) -> None:
    """Print the cluster's health as a table, then brokers, throttles and faults, if any."""
    columns = [column for column in HEALTH_COLUMNS if column.key not in _BELOW]
    write_object(columns, row, output)
    if row["brokers"]:
        sys.stdout.write("\n")
        write_rows(BROKER_FIELDS, row["brokers"], output)
    if row["throttles"]:
        sys.stdout.write("\n")
        write_rows(THROTTLE_FIELDS, row["throttles"], output)
    if row["faults"]:
        sys.stdout.write("\n")
        write_rows(FAULT_FIELDS, row["faults"], output)


def _fault_rows(directory: DataDirectory, status: ClusterStatus) -> list[dict[str, object]]:
    """Return a row for each network fault that `partition` and `slow` have set."""
    if status.state not in (ClusterState.RUNNING, ClusterState.HUNG):
        return []
    faults = encode_faults(read_faults(directory))
    rows = []
    if faults["groups"]:
        parted = " | ".join(",".join(group) for group in faults["groups"])
        rows.append({"kind": "partition", "places": parted, "delay_ms": None, "loss": None})
    return rows + [
        {"kind": "slow", "places": place, **kept} for place, kept in faults["slow"].items()
    ]


def _read_health(status: ClusterStatus) -> OutputRow:
    """Return controller, under-replicated and offline partitions and throttles, as brokers report.

    The values are None if no broker responds; the error is printed.
    """
    unknown = dict.fromkeys(("controller_id", "under_replicated", "offline", "throttles"))
    running = status.running_brokers()
    if status.state is not ClusterState.RUNNING or not running:
        return unknown
    from engine.client.health import request_health
    from kctl.connect import ClusterOptions, connect
    from kctl.embedded import admin_properties

    properties = admin_properties(status.data)
    options = ClusterOptions(",".join(running.values()), properties, timeout_s=_TIMEOUT_S)
    try:
        with connect(options) as client:
            health = request_health(client, list(running))
    except EngineError as error:
        report_error(error)
        return unknown
    return {**health._asdict(), "throttles": [one._asdict() for one in health.throttles]}


def _print_halt(broker: BrokerStatus, subject: str) -> None:
    """Print why an embedded broker was halted, its FATAL line, and the remedy.

    `subject` names the broker or the cluster. Prints nothing if it was not halted.
    """
    if broker.halt is None:
        return
    if broker.halt.line is None:
        notify(f"error: {subject} seems to have been halted: {broker.halt.cause}")
    else:
        notify(f"error: {subject} was halted: {broker.halt.cause or 'its log has the reason'}")
        notify(f"  {broker.halt.line}")
    notify(f"hint: {broker.halt.hint}")


def _print_problems(status: ClusterStatus) -> int:
    """Print why brokers do not run, and the last lines of their logs.

    Returns the exit code: UNREACHABLE if the process does not respond, FAILED if a broker does not
    run, else OK.
    """
    if status.state is ClusterState.HUNG:
        notify(f"process {status.pids[0]} is there and does not answer")
        notify(
            f"hint: `kill -CONT {status.pids[0]}` if it was stopped; else kill it and start again"
        )
        return exits.UNREACHABLE
    if status.state is not ClusterState.RUNNING:
        # All brokers share the process that was halted.
        for broker in status.brokers[:1]:
            _print_halt(broker, "the cluster")
        return exits.FAILED
    for broker in status.brokers:
        if broker.state is not BrokerState.RUNNING:
            notify(f"broker {broker.broker_id} is {broker.state.value}")
        for line in broker.log_end:
            notify(f"  {line}")
        _print_halt(broker, f"broker {broker.broker_id}")
    are_all_running = all(broker.state is BrokerState.RUNNING for broker in status.brokers)
    return exits.OK if are_all_running else exits.FAILED
