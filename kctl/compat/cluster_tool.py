"""`kafka-cluster`: shows cluster id and endpoints (4.3.0); unregisters brokers of KRaft.

Source: ClusterTool of 3.9.1 and 4.3.0.

Differs: endpoints of fenced brokers are not shown: the versions of DescribeCluster that this client
supports do not return them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import unregister_broker
from engine.client.errors import NoCommonVersion
from engine.client.metadata import BrokerView
from engine.errors import EngineError
from kctl import exits
from kctl.compat.java_admin import admin_call
from kctl.compat.java_commands import Arity, Command, CommandOption, GivenCommand, NumberType
from kctl.compat.java_failures import ToolFailure
from kctl.compat.releases import Release

SUMMARY = "Shows the id of a cluster and its endpoints, and unregisters brokers."
_SERVERS = ("bootstrap-server", "bootstrap-controller")
_TO_SERVERS = (
    CommandOption("bootstrap-server", "b", "Brokers to ask first."),
    CommandOption("bootstrap-controller", "C", "Controllers to ask first; not served."),
)
_CONNECTION = (*_TO_SERVERS, CommandOption("config", "c", "A file of client properties."))
_CONNECTION_4 = (
    *_TO_SERVERS,
    CommandOption("config", "", "The old name of --command-config."),
    CommandOption("command-config", "c", "A file of client properties."),
)
_ID = CommandOption("id", "i", "The id of the broker.", is_required=True, number=NumberType.Integer)
_FENCED = CommandOption(
    "include-fenced-brokers", "", "Those of fenced brokers, too.", takes=Arity.NOTHING
)
_RACKLESS_WIDTH: Final = 10


def commands(release: Release) -> tuple[Command, ...]:
    """Return the commands of kafka-cluster in a release, with their options."""
    connection = _CONNECTION_4 if release.is_four else _CONNECTION
    both = (
        Command("cluster-id", "Show the id of the cluster.", connection, _SERVERS),
        Command("unregister", "Unregister a broker.", (*connection, _ID), _SERVERS),
    )
    if not release.is_four:
        return both
    endpoints = Command(
        "list-endpoints", "Show the endpoints of brokers.", (*connection, _FENCED), _SERVERS
    )
    return (*both, endpoints)


def perform_command(
    wanted: GivenCommand, connect: Callable[[], KafkaClient], out: TextIO, err: TextIO
) -> int:
    """Run a command of kafka-cluster, and print the results; returns the exit code."""
    try:
        with connect() as client:
            _run_command(client, wanted, out)
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    return exits.OK


def _run_command(client: KafkaClient, wanted: GivenCommand, out: TextIO) -> None:
    """Print the cluster's id or endpoints, or unregister a broker."""
    if wanted.command.name == "unregister":
        _unregister(client, wanted.given.number("id", 0), out)
    elif wanted.command.name == "list-endpoints":
        with admin_call("describeCluster"):
            brokers = client.view([]).brokers
        out.write(endpoints_table([broker for _, broker in sorted(brokers.items())]))
    else:
        with admin_call("listNodes"):
            cluster_id = client.view([]).cluster_id
        if cluster_id is None:
            out.write("No cluster ID found. The Kafka version is probably too old.\n")
        else:
            out.write(f"Cluster ID: {cluster_id}\n")


def _unregister(client: KafkaClient, broker_id: int, out: TextIO) -> None:
    """Unregister a broker and print the result; raises ToolFailure."""
    try:
        unregister_broker(client, broker_id)
    except NoCommonVersion:
        out.write("The target cluster does not support the broker unregistration API.\n")
    except EngineError as error:
        with admin_call("unregisterBroker"):
            raise error
    else:
        out.write(f"Broker {broker_id} is no longer registered.\n")


def endpoints_table(brokers: Collection[BrokerView]) -> str:
    """Return the brokers' endpoints as kafka-cluster list-endpoints prints them.

    The state is always `unfenced`: brokers return no fenced ones here.
    """
    host_width = max((len(broker.address.host) for broker in brokers), default=0)
    racks = [broker.rack for broker in brokers if broker.rack is not None]
    rack_width = max(map(len, racks), default=_RACKLESS_WIDTH)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    rows += [
        (
            str(broker.broker_id),
            broker.address.host,
            str(broker.address.port),
            "null" if broker.rack is None else broker.rack,
            "unfenced",
            "broker",
        )
        for broker in brokers
    ]
    widths = (10, host_width, 10, rack_width, 10, 15)
    return "".join(
        " ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) + "\n"
        for row in rows
    )
