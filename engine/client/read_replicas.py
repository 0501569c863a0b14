"""Which replica of a partition a consumer fetches from: its leader, or one that is nearer.

1. A fetch of a consumer with a rack goes to the leader, which may name a replica and send nothing.
2. The next fetches go there, for `metadata.max.age.ms`; then the leader is asked again.
3. A replica that is not up, or whose fetch failed, is left for the leader at once.

Source: KIP-392; AbstractFetch.selectReadReplica, FetchUtils.requestMetadataUpdate of 3.9.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.metadata import ClusterView
from engine.host.ports import Clock
from engine.model import TopicPartition

_NO_REPLICA: Final = -1


class _ReadReplica(NamedTuple):
    broker_id: int
    until_ms: int


class ReadReplicas:
    """The replicas that leaders have named, by partition."""

    def __init__(self, clock: Clock, lasting_ms: int) -> None:
        """`lasting_ms` is how long a replica is fetched from until its leader is asked again."""
        self._clock = clock
        self._lasting_ms = lasting_ms
        self._replicas: dict[TopicPartition, _ReadReplica] = {}

    def note(self, partition: TopicPartition, broker_id: int) -> None:
        """Fetch a partition from the replica that a response names; −1 names none (1)."""
        if broker_id != _NO_REPLICA:
            until_ms = self._clock.monotonic_ms() + self._lasting_ms
            self._replicas[partition] = _ReadReplica(broker_id, until_ms)

    def choose(self, partition: TopicPartition, leader: int, view: ClusterView) -> int:
        """Return the broker to fetch from (2): the leader if there is no other that is up (3)."""
        replica = self._replicas.get(partition)
        if replica is None:
            return leader
        known = view.partition(partition)
        is_up = replica.broker_id in view.brokers and (
            known is not None and replica.broker_id not in known.offline_replicas
        )
        if is_up and self._clock.monotonic_ms() < replica.until_ms:
            return replica.broker_id
        del self._replicas[partition]
        return leader

    def forget(self, partition: TopicPartition) -> bool:
        """Fetch from the leader again (3); returns whether another replica was fetched from."""
        return self._replicas.pop(partition, None) is not None
