"""The states of partitions in the metadata store, if one can be reached.

That of the embedded cluster is found by itself; that of any other is a ZooKeeper which is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.host.real import RealClock
from engine.model import TopicPartition
from engine.znode.errors import NoNode
from engine.znode.model import Stat
from engine.znode.paths import partition_state_path
from engine.znode.values import PartitionStateNode, decode_partition_state
from kctl.iso_times import iso_time
from kctl.run_location import embedded_cluster
from kctl.zookeeper_login import logging_in


class StoredState(NamedTuple):
    """A partition's state and the path of its node."""

    state: PartitionStateNode
    stat: Stat


class StateNodes(NamedTuple):
    """The address of the metadata store; without one there are no states."""

    address: str | None
    timeout_s: float

    @classmethod
    def of(cls, client: KafkaClient, zookeeper: str | None, timeout_s: float) -> StateNodes:
        """Return the named store, or else the embedded cluster's if that is selected."""
        return cls(zookeeper or _embedded_address(client), timeout_s)

    def read(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredState]:
        """Return the stored states of partitions that have one. Errors: those of the store."""
        wanted = list(dict.fromkeys(partitions))
        if self.address is None or not wanted:
            return {}
        # It imports kazoo, which takes longer than many a response.
        from engine.znode.kazoo_reader import ZnodeReader

        found = {}
        with logging_in(ZnodeReader(self.address, self.timeout_s, RealClock())) as reader:
            for key in wanted:
                path = partition_state_path(key)
                try:
                    data, stat = reader.get(path)
                except NoNode:
                    continue
                found[key] = StoredState(decode_partition_state(data, path), stat)
        return found

    def require_answer(self) -> None:
        """Open a session of the store; raises ZookeeperUnreachable if that fails."""
        if self.address is None:
            return
        from engine.znode.kazoo_reader import ZnodeReader

        with ZnodeReader(self.address, self.timeout_s, RealClock()):
            return

    def since(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """Return when each partition's state was written last, in UTC, by its name."""
        return {
            str(key): iso_time(stored.stat.mtime_ms)
            for key, stored in self.read(partitions).items()
        }


def _embedded_address(client: KafkaClient) -> str | None:
    """Return the address of the embedded cluster's store, None for a client of another cluster."""
    data = embedded_cluster(client)
    running = None if data is None else data.running()
    return None if running is None else running.znode_address
