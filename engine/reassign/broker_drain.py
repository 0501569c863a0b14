"""Check that a drained broker has deleted its replicas."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.errors import Unreachable
from engine.errors import EngineError

#: Time between two polls of a broker.
_POLL_MS = 200


def await_replicas_left(client: KafkaClient, broker_id: int) -> int:
    """Wait until a broker has no replica; return how many it has at the client's timeout.

    The controller completes a reassignment once it has requested the deletion, which the broker
    may do later. For a dead broker the number of replicas assigned to it is returned; it is
    listed until its session expires, and is polled as long. Raises the errors of the requests.
    """
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    while True:
        if broker_id not in client.view([]).brokers:
            return _assigned_count(client, broker_id)
        answer = describe_log_dirs(client, [broker_id])[broker_id]
        is_over = client.clock.monotonic_ms() >= deadline_ms
        if isinstance(answer, EngineError):
            if is_over or not isinstance(answer, Unreachable):
                raise answer
        else:
            count = sum(len(log_dir.replicas) for log_dir in answer)
            if not count or is_over:
                return count
        client.connections.pause(_POLL_MS)


def _assigned_count(client: KafkaClient, broker_id: int) -> int:
    """Return the number of replicas that are assigned to a broker, from the metadata."""
    topics = client.view(None).topics.values()
    return sum(broker_id in each.replicas for topic in topics for each in topic.partitions)
