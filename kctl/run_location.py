"""Where `run` commands work: in a log directory, or on the embedded cluster of a client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engine.errors import EngineError
from kctl import exits

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.cluster.data_directory import DataDirectory


class ConflictingRunOptions(EngineError):
    """Options of `run` that do not go together."""

    exit_code = exits.USAGE

    def __init__(self, rule: str, hint: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.hint = hint


def find_embedded_cluster(client: KafkaClient) -> DataDirectory | None:
    """Return the data directory of the embedded cluster that a client is connected to.

    None for any other cluster. The brokers' addresses are requested and compared.
    """
    from engine.host.real import RealFiles
    from kctl.known_clusters import cluster_at

    addresses = {
        broker_id: str(broker.address)
        for broker_id, broker in client.brokers_view().brokers.items()
    }
    return cluster_at(RealFiles(), os.environ, addresses)
