"""Whether a broker holds no replica any more, once it has had the time to delete them."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.errors import EngineError

#: How often a broker is asked.
_POLL_MS = 200


def replicas_left(client: KafkaClient, broker_id: int) -> int:
    """Return how many replicas a broker still holds, 0 for one that is not alive.

    The controller ends a move once it has asked for the replica to be deleted: the broker may be at
    it for a while, and is asked again within the client's time. Errors: those of asking.
    """
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    while True:
        alive = [id_ for id_ in client.view([]).brokers if id_ == broker_id]
        answer = describe_log_dirs(client, alive).get(broker_id, [])
        if isinstance(answer, EngineError):
            raise answer
        count = sum(len(log_dir.replicas) for log_dir in answer)
        if not count or client.clock.monotonic_ms() >= deadline_ms:
            return count
        client.links.pause(_POLL_MS)
