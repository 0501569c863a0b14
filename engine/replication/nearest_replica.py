"""Choose the replica that a consumer should read from: the leader, or a follower in its rack.

```
 client's rack ─ not sent ───────────────────────────────> the leader
              └─ replicas in it ─ none ──────────────────> the leader
                               ├─ the leader is in it ───> the leader
                               └─ the highest log end offset; of equal ones the last caught up
```

Only in-sync replicas with the requested offset are candidates. The leader responds with the
follower's id and no records; the consumer reads from the follower until its next metadata refresh.

Source: REPL-9, KIP-392; ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector.
Differs: other classes than Kafka's cannot be loaded; a broker with such a setting does not start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.host.ports import Clock
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchClient


class ReplicaView(NamedTuple):
    """A replica that a consumer could read from."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    since_caught_up_ms: int = 0


def choose_replica(
    rack_id: str, leader: ReplicaView, followers: Sequence[ReplicaView]
) -> ReplicaView:
    """Return the replica that a client in `rack_id` should read from.

    It is the leader if the leader is in that rack, or if no follower is; else the follower in that
    rack with the most records.
    """
    if not rack_id or leader.rack == rack_id:
        return leader
    return max(
        (replica for replica in followers if replica.rack == rack_id),
        key=lambda replica: (
            replica.log_end_offset,
            -replica.since_caught_up_ms,
            replica.broker_id,
        ),
        default=leader,
    )


class NearestReplica:
    """The rack-aware selector of `replica.selector.class`."""

    def __init__(self, metadata_cache: MetadataCache, clock: Clock) -> None:
        self._metadata_cache = metadata_cache
        self._clock = clock

    def preferred_replica(
        self, partition: Partition, client: FetchClient, fetch_offset: int
    ) -> int | None:
        """Return the id of the follower that a consumer should read from, None for this broker.

        Only followers in the ISR whose log contains `fetch_offset` are considered (KIP-392).
        """
        if not partition.is_leader:
            return None
        nodes = self._replica_nodes(partition, client.listener)
        own = nodes.get(partition.broker_id)
        end = partition.log.log_end_offset
        leader = ReplicaView(partition.broker_id, None if own is None else own.rack, end)
        now_ms, isr = self._clock.monotonic_ms(), partition.in_sync.isr
        followers = [
            ReplicaView(
                replica_id,
                nodes[replica_id].rack,
                progress.log_end_offset,
                now_ms - progress.last_caught_up_ms,
            )
            for replica_id, progress in partition.followers.items()
            if replica_id in isr
            and replica_id in nodes
            and progress.log_start_offset <= fetch_offset <= progress.log_end_offset
        ]
        chosen = choose_replica(client.rack_id, leader, followers)
        return None if chosen is leader else chosen.broker_id

    def _replica_nodes(self, partition: Partition, listener: str) -> dict[int, BrokerNode]:
        """Return the live brokers with a replica that have the client's listener."""
        known = self._metadata_cache.partition(partition.topic_partition)
        brokers = self._metadata_cache.brokers
        return {
            replica_id: brokers[replica_id]
            for replica_id in (() if known is None else known.replicas)
            if replica_id in brokers and brokers[replica_id].endpoint(listener) is not None
        }
