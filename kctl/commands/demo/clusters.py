"""The cluster of a demo: a named one, or a temporary one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.settings import client_settings, parse_addresses
from engine.cluster.plan import ClusterPlan
from engine.demo.temporary_cluster import TemporaryCluster
from engine.host.temporary import temporary_folder
from kctl.connect import ClusterOptions, connect, real_host
from kctl.console import notify


class DemoCluster(NamedTuple):
    """The cluster of a demo; `temporary` is None if the demo did not start it.

    `properties` are the settings of the demo's clients.
    """

    bootstrap_servers: str
    properties: dict[str, str]
    connect: Callable[[], KafkaClient]
    temporary: TemporaryCluster | None


def is_named(options: ClusterOptions) -> bool:
    """Return True if an option names a cluster; a demo without one starts a temporary cluster."""
    return any((options.bootstrap_server, options.context, options.command_config))


@contextmanager
def demo_cluster(options: ClusterOptions, plan: ClusterPlan) -> Iterator[DemoCluster]:
    """Yield the cluster that options name, or else a temporary one that ends with the block.

    Errors: those of connecting and of starting a cluster.
    """
    if is_named(options):
        yield _named_cluster(options)
        return
    host = real_host()

    def client() -> KafkaClient:
        """Return a new client of the temporary cluster; called once that runs."""
        return KafkaClient(
            parse_addresses(cluster.bootstrap_servers),
            streams=real_host().streams,
            clock=host.clock,
            entropy=host.entropy,
            settings=client_settings(options.overrides),
            timeout_ms=round(options.timeout_s * 1000),
        )

    with temporary_folder("kctl-demo-") as folder:
        notify(f"starting a cluster of {plan.broker_count} in {folder}")
        with TemporaryCluster(host.clock, _pause, f"{folder}/cluster", plan) as cluster:
            yield DemoCluster(cluster.bootstrap_servers, dict(options.overrides), client, cluster)


def _named_cluster(options: ClusterOptions) -> DemoCluster:
    """Return the cluster that the options name, with the client properties of file and options.

    The properties go to the processes of the demo; this process connects by the options.
    """
    from engine.host.real import RealFiles
    from kctl.client_overrides import merge_over_file
    from kctl.context import choose
    from kctl.properties_file import read_properties

    choice = choose(
        os.environ,
        RealFiles(),
        bootstrap_server=options.bootstrap_server,
        context=options.context,
        command_config=options.command_config,
    )
    path = choice.command_config
    in_file = {} if path is None else read_properties(RealFiles(), path)
    properties = merge_over_file(in_file, options.overrides)
    return DemoCluster(choice.bootstrap_servers, properties, lambda: connect(options), None)


def _pause(duration_ms: int) -> None:
    """Sleep; the temporary cluster calls it while it waits for its process."""
    time.sleep(duration_ms / 1000)
