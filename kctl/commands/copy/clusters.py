"""Clients and cluster ids of both sides of `kctl copy`; errors name the side."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.errors import AuthenticationFailed, NoCommonVersion, TimedOut, Unreachable
from engine.errors import EngineError, WireError
from kctl import exits
from kctl.cluster_arguments import choose_cluster
from kctl.commands.copy.request import CopyRequest
from kctl.connect import ClusterOptions, create_client
from kctl.guard import client_checks, reading_checks
from kctl.hints import hint_for

#: Errors of a client that receives no response from the cluster.
_NO_ANSWER = (AuthenticationFailed, NoCommonVersion, TimedOut, Unreachable, WireError)


class CopySideFailed(EngineError):
    """The first request to the source or the destination failed."""

    def __init__(self, side: str, cluster: str, cause: EngineError) -> None:
        super().__init__(f"the {side}, {cluster}: {cause}")
        self.hint = hint_for(cause)
        self.side = side
        self.exit_code = getattr(cause, "exit_code", exits.FAILED)


def source_client(request: CopyRequest) -> KafkaClient:
    """Return a client of the cluster to copy from, with the checks of commands that only read.

    Errors: those of `create_client`.
    """
    choice = choose_cluster(request.source, request.source_config)
    options = ClusterOptions(timeout_s=request.timeout_s, overrides=request.source_settings)
    return create_client(choice, reading_checks(choice), options)


def destination_client(request: CopyRequest) -> KafkaClient:
    """Return a client of the cluster to copy to, with the checks of commands that change it.

    Errors: those of `create_client`.
    """
    choice = choose_cluster(request.destination, request.destination_config)
    options = ClusterOptions(timeout_s=request.timeout_s, overrides=request.destination_settings)
    return create_client(choice, client_checks(choice), options)


def fetch_cluster_ids(
    source: KafkaClient, destination: KafkaClient, request: CopyRequest
) -> tuple[str | None, str | None]:
    """Return the cluster ids of source and destination, None for a cluster without an id.

    These are the first requests to each, so an unreachable cluster fails here, before any change.
    Errors: CopySideFailed, those of guarded contexts.
    """
    return (
        _fetch_cluster_id(source, "source", request.source),
        _fetch_cluster_id(destination, "destination", request.destination),
    )


def _fetch_cluster_id(client: KafkaClient, side: str, cluster: str) -> str | None:
    """Request a cluster's id; raise CopySideFailed with the side if it does not respond."""
    try:
        return client.view([]).cluster_id
    except _NO_ANSWER as error:
        raise CopySideFailed(side, cluster, error) from error
