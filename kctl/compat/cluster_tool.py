"""`kafka-cluster`: the id of a cluster; nothing is unregistered where znodes are.

Source: ClusterTool of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from engine.client.blocking import KafkaClient
from kctl import exits
from kctl.compat.java_admin import admin_call
from kctl.compat.java_commands import Command, CommandOption, GivenCommand
from kctl.compat.java_failures import ToolFailure

SUMMARY = "Shows the id of a cluster, and unregisters brokers."
_SERVERS = ("bootstrap-server", "bootstrap-controller")
_CONNECTION = (
    CommandOption("bootstrap-server", "b", "Brokers to ask first."),
    CommandOption("bootstrap-controller", "C", "Controllers to ask first; not served."),
    CommandOption("config", "c", "A file of client properties."),
)
COMMANDS = (
    Command("cluster-id", "Show the id of the cluster.", _CONNECTION, _SERVERS),
    Command(
        "unregister",
        "Unregister a broker.",
        (
            *_CONNECTION,
            CommandOption("id", "i", "The id of the broker.", is_required=True, is_number=True),
        ),
        _SERVERS,
    ),
)


def perform_command(
    wanted: GivenCommand, connect: Callable[[], KafkaClient], out: TextIO, err: TextIO
) -> int:
    """Do what is requested and print it; returns the exit code."""
    try:
        with connect() as client, admin_call("listNodes"):
            cluster_id = client.view([]).cluster_id
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    if wanted.command.name == "unregister":
        out.write("The target cluster does not support the broker unregistration API.\n")
    elif cluster_id is None:
        out.write("No cluster ID found. The Kafka version is probably too old.\n")
    else:
        out.write(f"Cluster ID: {cluster_id}\n")
    return exits.OK
