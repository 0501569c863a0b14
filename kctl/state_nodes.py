"""The states of partitions in the metadata store, if one is known.

The store of an embedded cluster is found automatically; for other clusters it is the ZooKeeper that
the command names.
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
from kctl.run_location import find_embedded_cluster
from kctl.zookeeper_login import set_login


class StoredState(NamedTuple):
    """A partition's state, and the ZooKeeper metadata (stat) of its node."""

    state: PartitionStateNode
    stat: Stat


class StateNodes(NamedTuple):
    """Access to the partition states in a metadata store; without an address there are none."""

    address: str | None
    timeout_s: float

    @classmethod
    def of(cls, client: KafkaClient, zookeeper: str | None, timeout_s: float) -> StateNodes:
        """Return the states in a store: the named ZooKeeper, else that of an embedded cluster.

        The embedded cluster is the one that the client uses; for others the states are unknown
        without `zookeeper`. `timeout_s` is for the store's requests.
        """
        return cls(zookeeper or _embedded_address(client), timeout_s)

    def read(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredState]:
        """Read the stored states of partitions; those without a state are left out.

        Empty if no store is known. Errors: those of the store.
        """
        wanted = list(dict.fromkeys(partitions))
        if self.address is None or not wanted:
            return {}
        # Imported late: kazoo takes longer to import than many a command to run.
        from engine.znode.kazoo_reader import ZnodeReader

        found = {}
        with set_login(ZnodeReader(self.address, self.timeout_s, RealClock())) as reader:
            for key in wanted:
                path = partition_state_path(key)
                try:
                    data, stat = reader.get(path)
                except NoNode:
                    continue
                found[key] = StoredState(decode_partition_state(data, path), stat)
        return found

    def check_reachable(self) -> None:
        """Connect to the store once; raises ZookeeperUnreachable.

        Nothing happens if no store is known.
        """
        if self.address is None:
            return
        from engine.znode.kazoo_reader import ZnodeReader

        with ZnodeReader(self.address, self.timeout_s, RealClock()):
            return

    def since(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """Return when each partition's state was last written, as ISO 8601 in UTC.

        The key is TOPIC-PARTITION; partitions without a stored state are left out.
        """
        return {
            str(key): iso_time(stored.stat.mtime_ms)
            for key, stored in self.read(partitions).items()
        }


def _embedded_address(client: KafkaClient) -> str | None:
    """Return the store's address of the embedded cluster that a client uses, else None."""
    data = find_embedded_cluster(client)
    running = None if data is None else data.running()
    return None if running is None else running.znode_address
