"""Implementation of `kctl transactions forge-hanging`."""

from __future__ import annotations

import os
from typing import NamedTuple

from engine.client.forged_transaction import forge_hanging
from engine.cluster.daemon import NoClusterInDirectory
from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.host.real import RealFiles
from kctl import exits
from kctl.commands.transactions.partition_argument import one_partition
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.durations import parse_duration_ms
from kctl.embedded import admin_properties, cluster_path
from kctl.render import Column, check_format, write_rows

FORGED_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("transaction_start_offset", "START-OFFSET", right=True),
    Column("records", "RECORDS", right=True),
    Column("producer_id", "PRODUCER", right=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("transactional_id", "TRANSACTIONAL-ID"),
)


class ForgeRequest(NamedTuple):
    """The options of `kctl transactions forge-hanging`."""

    partition: str
    transactional_id: str
    records: int
    age: str
    data: str | None
    output: str


def create_hanging(options: ClusterOptions, request: ForgeRequest) -> int:
    """Create a hanging transaction on an embedded cluster, to try out its repair.

    Prints it, and returns the exit code.
    """
    check_format(request.output)
    key = one_partition(request.partition)
    age_ms = parse_duration_ms(request.age, "--age")
    with connect(_embedded_options(options, request.data)) as client:
        forged = forge_hanging(
            client,
            key,
            request.transactional_id,
            record_count=request.records,
            age_ms=age_ms,
        )
    row = {
        "topic": key.topic,
        "partition": key.partition,
        "transaction_start_offset": forged.start_offset,
        "records": forged.record_count,
        "producer_id": forged.identity.producer_id,
        "producer_epoch": forged.identity.producer_epoch,
        "transactional_id": forged.transactional_id,
    }
    write_rows(FORGED_COLUMNS, [row], request.output)
    notify(f"readers of committed records of {key} wait at offset {forged.start_offset}")
    return exits.OK


def _embedded_options(options: ClusterOptions, data: str | None) -> ClusterOptions:
    """Return options to connect to an embedded cluster, by default as its administrator.

    Raises NoClusterInDirectory unless the cluster runs.
    """
    directory = DataDirectory(RealFiles(), cluster_path(os.environ, data))
    running = directory.running() if directory.state() is ClusterState.RUNNING else None
    if running is None:
        raise NoClusterInDirectory(directory.path)
    properties = options.command_config or admin_properties(directory.path)
    return options._replace(bootstrap_server=running.bootstrap_servers, command_config=properties)
