"""A snapshot of a cluster, to compare it with the next one: two requests."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.connection import Response
from engine.client.metadata import ClusterView
from engine.client.reassignments import listing_call, listing_of
from engine.errors import EngineError
from engine.exporter.view_changes import ClusterSnapshot
from engine.model import TopicPartition


def take_snapshot(client: KafkaClient, timeout_ms: int) -> ClusterSnapshot:
    """Request the metadata of the cluster, and the reassignments from the controller.

    Errors: those of requesting metadata.
    """
    deadline_ms = client.clock.monotonic_ms() + timeout_ms
    view = client.view(None, deadline_ms=deadline_ms)
    return ClusterSnapshot(view, _request_moving(client, view, deadline_ms))


def _request_moving(
    client: KafkaClient, view: ClusterView, deadline_ms: int
) -> frozenset[TopicPartition] | None:
    """Request the partitions in reassignment from the controller; None without a response."""
    controller = view.brokers.get(view.controller_id)
    if controller is None:
        return None
    left_ms = max(deadline_ms - client.clock.monotonic_ms(), 1)
    call = listing_call(None, left_ms)
    result = client.exchange({0: (controller.address, call)}, deadline_ms)[0]
    if not isinstance(result, Response):
        return None
    moves = listing_of(result.message)
    return None if isinstance(moves, EngineError) else frozenset(moves)
