"""`kafka-broker-api-versions`: prints the API versions that each broker supports.

Source: BrokerApiVersionsCommand, NodeApiVersions.toString of 3.9.1 and 4.3.0.
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
from kctl.compat.releases import Release

SUMMARY = "Shows the versions of requests that brokers offer."
_OPTIONS = (
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    HELP,
    VERSION,
)
#: APIs that the client of each release uses.
_KNOWN: Final = {
    Release.V3_9: frozenset(
        (*range(52), *range(55, 59), 60, 61, *range(64, 70), 71, 72, *range(74, 82), *range(83, 88))
    ),
    Release.V4_3: frozenset(
        (
            *range(4),
            *range(8, 52),
            *(55, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72),
            *range(74, 82),
            *range(83, 93),
        )
    ),
}


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-broker-api-versions, the same in each release."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused if kafka-broker-api-versions lacks --bootstrap-server."""
    require(given, "bootstrap-server")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-broker-api-versions: print the versions of all brokers; returns the exit code."""
    del wanted, files
    try:
        with connect() as client:
            with admin_call("metadata"):
                brokers = client.view(None).brokers
            for broker in brokers.values():
                versions = _versions(client, broker.broker_id, given.release)
                out.write(f"{_named(broker, given.release)} -> {versions}\n")
    except ToolFailure as failure:
        err.write(failure.trace())
        return exits.FAILED
    return exits.OK


def _named(broker: BrokerView, release: Release) -> str:
    """Return a broker as text, as the tool of the release prints it."""
    rack = "null" if broker.rack is None else broker.rack
    fenced = " isFenced: false" if release.is_four else ""
    address = broker.address
    return f"{address.host}:{address.port} (id: {broker.broker_id} rack: {rack}{fenced})"


def _versions(client: KafkaClient, broker_id: int, release: Release) -> str:
    """Request a broker's API versions; return them, or the error, as text."""
    try:
        return versions_text(api_versions(client, broker_id).versions, release)
    except EngineError as error:
        shown = java_text(error) if isinstance(error, ApiError) else error
        return f"ERROR: {shown}"


def versions_text(offered: Mapping[int, VersionRange], release: Release) -> str:
    """Return a line for each API that the broker, or the client of the release, knows."""
    keys = sorted({*offered, *_KNOWN[release]})
    lines = [_api_line(key, offered.get(key), release) for key in keys]
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def _api_line(key: int, offered: VersionRange | None, release: Release) -> str:
    """Return the line of an API: the broker's versions, and the one the client would use."""
    # An API that a release has removed is still printed with its name.
    name = api_names(release.value).get(key) or api_names(Release.V3_9.value).get(key)
    named = f"UNKNOWN({key})" if name is None else f"{name}({key})"
    if offered is None:
        return f"{named}: UNSUPPORTED"
    lowest, highest = offered
    versions = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if name is None:
        return f"{named}: {versions}"
    is_gone = key not in api_names(release.value)
    ours = VersionRange(-1, -1) if is_gone else api(key, release.value).versions
    if ours.highest < lowest:
        return f"{named}: {versions} [unusable: node too new]"
    if highest < ours.lowest:
        return f"{named}: {versions} [unusable: node too old]"
    return f"{named}: {versions} [usable: {min(highest, ours.highest)}]"
