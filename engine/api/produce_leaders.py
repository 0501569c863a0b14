"""The current leader in Produce and Fetch responses to a client of the wrong broker.

Source: REPL-16, KIP-951; KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire.produce_bytes import NodeEndpoint


class CurrentLeaders:
    """Collects the leaders for one response, with their endpoints of the client's listener."""

    __slots__ = ("_listener", "_metadata_cache", "_nodes", "_replica_manager")

    def __init__(
        self, replica_manager: ReplicaManager, metadata_cache: MetadataCache, listener: str
    ) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._listener = listener
        #: Leaders of the refused partitions, by broker id.
        self._nodes: dict[int, NodeEndpoint] = {}

    @property
    def endpoints(self) -> list[NodeEndpoint]:
        """Return the endpoints of the leaders that `find` has returned, each once.

        Dead ones have none.
        """
        return list(self._nodes.values())

    def find(self, topic_partition: TopicPartition) -> tuple[int, int] | None:
        """Return id and epoch of a partition's leader, by the replica here or else by the metadata.

        Its endpoint is added to `endpoints`. None if the leader is unknown: the response omits it.
        """
        partition = self._replica_manager.partitions.get(topic_partition)
        leader = partition or self._metadata_cache.partition(topic_partition)
        if leader is None:
            return None
        leader_id, leader_epoch = leader.leader_id, leader.leader_epoch
        if leader_id == leader_epoch == -1:
            return None
        broker = self._metadata_cache.brokers.get(leader_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        if broker is not None and endpoint is not None:
            self._nodes[leader_id] = NodeEndpoint(
                leader_id, endpoint.host, endpoint.port, broker.rack
            )
        return leader_id, leader_epoch
