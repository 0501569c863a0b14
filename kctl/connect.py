"""Create the client of the cluster that a command's options select."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

# Import lazily below: commands import this module for their options even without a cluster.
if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.client.request_checks import ClientChecks
    from engine.client.settings import ClientSettings
    from engine.host.ports import Clock, Entropy
    from engine.host.streams import Streams
    from kctl.context import Choice


class ClusterOptions(NamedTuple):
    """The options of every command that connects to a cluster.

    `overrides` are client settings that override those of the properties file.
    """

    bootstrap_server: str | None = None
    command_config: str | None = None
    context: str | None = None
    timeout_s: float = 30.0
    overrides: Mapping[str, str] = {}


class Host(NamedTuple):
    """The ports that a client needs; tests replace them."""

    streams: Streams
    clock: Clock
    entropy: Entropy


def real_host() -> Host:
    """Return the streams, clock and entropy of this machine, for code that takes them."""
    from engine.host.real import RealClock, RealEntropy
    from engine.host.real_streams import RealStreams

    return Host(RealStreams(), RealClock(), RealEntropy())


def connect(options: ClusterOptions) -> KafkaClient:
    """Return a client of the selected cluster; it connects at its first request.

    Its requests pass the checks of `guard`, and may raise their errors. Errors: NoCluster,
    NoSuchContext, BadContextFile, ClientSettingRefused, FileMissing.
    """
    from engine.host.real import RealFiles
    from kctl.context import choose
    from kctl.guard import client_checks

    choice = choose(
        os.environ,
        RealFiles(),
        bootstrap_server=options.bootstrap_server,
        context=options.context,
        command_config=options.command_config,
    )
    return create_client(choice, client_checks(choice), options)


def create_client(choice: Choice, checks: ClientChecks, options: ClusterOptions) -> KafkaClient:
    """Return a client of the chosen cluster, with the time-out and -X settings of `options`.

    It connects at its first request. `checks` are run on its requests (`guard`).

    `checks` are the guards' checks of its requests. Errors: ClientSettingRefused, FileMissing.
    """
    from engine.client.blocking import KafkaClient
    from engine.client.settings import parse_addresses
    from kctl.verbosity import print_choice

    print_choice("cluster", choice.bootstrap_servers, choice.source)
    settings = read_client_settings(choice.command_config, options.overrides)
    host = real_host()
    return KafkaClient(
        parse_addresses(choice.bootstrap_servers),
        streams=host.streams,
        clock=host.clock,
        entropy=host.entropy,
        settings=settings,
        timeout_ms=max(round(options.timeout_s * 1000), 1),
        checks=checks,
    )


def cluster_named(client: KafkaClient) -> str:
    """Request a cluster's id; return "cluster ID at ADDRESSES", for a confirmation.

    Without an id it returns only the bootstrap addresses of the client.

    Errors: those of a metadata request.
    """
    view = client.brokers_view()
    addresses = ",".join(map(str, client.bootstrap))
    return f"cluster {view.cluster_id} at {addresses}" if view.cluster_id else addresses


def read_client_settings(path: str | None, overrides: Mapping[str, str]) -> ClientSettings:
    """Return the client settings of a properties file (None: no file) with -X settings applied.

    `overrides` are those of -X.

    Errors: ClientSettingRefused, FileMissing.
    """
    from engine.client.settings import client_settings

    if path is None:
        return client_settings(overrides)
    from engine.host.real import RealFiles
    from kctl.client_overrides import merge_over_file
    from kctl.properties_file import read_properties

    return client_settings(merge_over_file(read_properties(RealFiles(), path), overrides))


def settings_in_file(options: ClusterOptions, keys: Iterable[str]) -> dict[str, str]:
    """Return a command's own settings from the properties file of the selected cluster.

    `keys` are the settings to look for, such as those of a producer; absent ones are left out.

    Empty without a cluster, which `connect` reports later. Errors: NoSuchContext, BadContextFile,
    FileMissing.
    """
    from engine.host.real import RealFiles
    from kctl.context import NoCluster, choose
    from kctl.properties_file import read_properties

    try:
        path = choose(
            os.environ,
            RealFiles(),
            bootstrap_server=options.bootstrap_server,
            context=options.context,
            command_config=options.command_config,
        ).command_config
    except NoCluster:
        return {}
    properties = {} if path is None else read_properties(RealFiles(), path)
    return {key: properties[key] for key in keys if key in properties}
