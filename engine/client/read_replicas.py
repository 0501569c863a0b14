"""Choose the replica that a consumer fetches a partition from: the leader or a nearer replica.

1. A fetch of a consumer with a rack goes to the leader, which may name a replica and send no
   records.
2. The next fetches go there, for `metadata.max.age.ms`; then the leader is fetched from again.
3. If the replica is not alive in metadata, or a fetch from it failed, the leader is used at once;
   also if another leader, or the same one in an earlier epoch, has named it.
4. If the replica is not alive in metadata, metadata is refreshed: it may have started since.

Source: KIP-392; AbstractFetch.selectReadReplica, FetchUtils.requestMetadataUpdate,
SubscriptionState.TopicPartitionState.maybeValidatePosition of 3.9.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.metadata import ClusterView, PartitionView
from engine.host.ports import Clock
from engine.model import TopicPartition

_NO_REPLICA: Final = -1


class _ReadReplica(NamedTuple):
    broker_id: int
    until_ms: int
    #: The leader that named the replica, and its leader epoch.
    named_by: tuple[int, int] | None


class ReadReplicas:
    """The replicas that leaders have named, by partition."""

    def __init__(self, clock: Clock, lasting_ms: int) -> None:
        """Create without read replicas; one is used for `lasting_ms`, then the leader again."""
        self._clock = clock
        self._lasting_ms = lasting_ms
        self._replicas: dict[TopicPartition, _ReadReplica] = {}

    def note(self, partition: TopicPartition, broker_id: int, view: ClusterView) -> bool:
        """Store the preferred read replica that a Fetch response names.

        True if it is not the leader. `broker_id` −1 means none, and a leader may name itself.
        `view` is the metadata by which the partition was fetched.
        """
        known = view.partition(partition)
        if broker_id == _NO_REPLICA or (known is not None and broker_id == known.leader):
            return False
        until_ms = self._clock.monotonic_ms() + self._lasting_ms
        self._replicas[partition] = _ReadReplica(broker_id, until_ms, _leadership(known))
        return True

    def choose(self, partition: TopicPartition, leader: int, view: ClusterView) -> int | None:
        """Return the broker to fetch a partition from.

        That is its read replica if it is still valid, else the leader. None if the read replica is
        not alive in the metadata: the caller fetches from the leader and refreshes the metadata.
        """
        replica = self._replicas.get(partition)
        if replica is None:
            return leader
        known = view.partition(partition)
        is_over = self._clock.monotonic_ms() >= replica.until_ms
        if is_over or replica.named_by != _leadership(known):
            del self._replicas[partition]
            return leader
        if (
            known is not None
            and replica.broker_id in view.brokers
            and replica.broker_id not in known.offline_replicas
        ):
            return replica.broker_id
        del self._replicas[partition]
        return None

    def forget(self, partition: TopicPartition) -> bool:
        """Remove the read replica of a partition, as after an error or a seek.

        Returns True if there was one.
        """
        return self._replicas.pop(partition, None) is not None


def _leadership(known: PartitionView | None) -> tuple[int, int] | None:
    """Return leader and leader epoch of a partition; None if it is not in the metadata.

    A read replica is valid while both are the same.
    """
    return None if known is None else (known.leader, known.leader_epoch)
