"""`kafka-broker-api-versions`: the versions of requests that each broker offers.

Source: BrokerApiVersionsCommand, NodeApiVersions.toString of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import api_versions
from engine.client.connection import VersionRange
from engine.client.metadata import BrokerView
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from engine.wire.headers import api
from engine.wire.schema import api_names
from kctl import exits
from kctl.compat.java_admin import admin_call
from kctl.compat.java_failures import ToolFailure, java_text
from kctl.compat.java_options import HELP, VERSION, GivenOptions, ToolOption, require

SUMMARY = "Shows the versions of requests that brokers offer."
OPTIONS = (
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    HELP,
    VERSION,
)
#: What the client of 3.9.1 knows and its broker with znodes does not offer.
_OF_OTHER_BROKERS: Final = (55, 64, 71, 72, 74, 75, 76, 77, 78, 79, 80, 81, 83, 84, 85, 86, 87)


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused for options that do not fit."""
    require(given, "bootstrap-server")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Print the versions of all brokers; returns the exit code."""
    del given, wanted, files
    try:
        with connect() as client:
            with admin_call("metadata"):
                brokers = client.view(None).brokers
            for broker in brokers.values():
                out.write(f"{_named(broker)} -> {_versions(client, broker.broker_id)}\n")
    except ToolFailure as failure:
        err.write(failure.trace())
        return exits.FAILED
    return exits.OK


def _named(broker: BrokerView) -> str:
    rack = "null" if broker.rack is None else broker.rack
    return f"{broker.address.host}:{broker.address.port} (id: {broker.broker_id} rack: {rack})"


def _versions(client: KafkaClient, broker_id: int) -> str:
    try:
        return versions_text(api_versions(client, broker_id).versions)
    except EngineError as error:
        shown = java_text(error) if isinstance(error, ApiError) else error
        return f"ERROR: {shown}"


def versions_text(offered: Mapping[int, VersionRange]) -> str:
    """Return a line for each API that the broker or the client of 3.9.1 knows."""
    lines = [_line(key, offered.get(key)) for key in sorted({*offered, *_OF_OTHER_BROKERS})]
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def _line(key: int, offered: VersionRange | None) -> str:
    name = api_names().get(key)
    named = f"UNKNOWN({key})" if name is None else f"{name}({key})"
    if offered is None:
        return f"{named}: UNSUPPORTED"
    lowest, highest = offered
    versions = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if name is None:
        return f"{named}: {versions}"
    ours = api(key).stable
    usable = min(highest, ours.highest)
    is_usable = usable >= max(lowest, ours.lowest)
    return f"{named}: {versions} [{f'usable: {usable}' if is_usable else 'unusable'}]"
