"""Read the partitions of a fetch in order, within the byte limits of the fetch.

```
 partition ─┬─ a nearer replica for the consumer ─> no records, its broker id (REPL-9)
            ├─ read ─┬─ a throttled follower ──────────────────> no records (REPL-17)
            │        ├─ the first batch is incomplete ────────> no records
            │        └─ records, a diverging epoch
            └─ refused ─> an error of the partition
```

A follower's fetch offset is recorded as its progress only here, and only if it was not refused.

Source: FET-2, FET-3, REPL-9, REPL-17; ReplicaManager.readFromLog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.errors import ApiError, StorageError
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_fetch import FetchResult, FetchResults
from engine.replication.effects import Effect
from engine.replication.errors import InconsistentTopicId
from engine.replication.follower_session import SessionPosition, is_unchanged
from engine.replication.hosted_partitions import HostedPartitions
from engine.replication.nearest_replica import NearestReplica
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.ports import ReplicaManagerPorts


class RemainingBytes:
    """The bytes that a fetch may still read after some of its partitions."""

    __slots__ = ("at_least_one_batch", "left_bytes", "topic_ids")

    def __init__(self, params: FetchParams, topic_ids: Mapping[str, str]) -> None:
        """Create the remaining limits of a fetch that is read in several calls.

        They begin with the limits of the request.
        """
        #: Topic ids of the request: between two calls another topic may get the same name.
        self.topic_ids = topic_ids
        self.left_bytes = params.max_bytes
        #: Whether no records were read yet: then one batch may exceed the limits.
        self.at_least_one_batch = not params.is_max_bytes_hard


class PartitionReader:
    """Reads the partitions of one broker."""

    def __init__(
        self,
        hosted: HostedPartitions,
        ports: ReplicaManagerPorts,
    ) -> None:
        """Create the reader of a replica manager's partitions for fetches."""
        self._partitions = hosted.partitions
        self._find, self._answer_to = hosted.find, hosted.answer_to
        self._counts_of = hosted.topic_counts.counts_of
        self._ports = ports

    def read_partitions(
        self,
        params: FetchParams,
        specs: Iterable[tuple[TopicPartition, FetchSpec]],
        effects: list[Effect] | None,
        left: RemainingBytes | None = None,
        session: Mapping[TopicPartition, SessionPosition] | None = None,
    ) -> FetchResults:
        """Read partitions until the byte limit of the fetch is used up.

        Records the progress of followers in `effects`, unless that is None. Only the first
        partition with records may return a batch above the limits (FET-3). `left` has the remaining
        bytes of a fetch that is read in several calls. Partitions without a change for a follower's
        `session` are left out.
        """
        if left is None:
            left_bytes, at_least_one_batch = params.max_bytes, not params.is_max_bytes_hard
        else:
            left_bytes, at_least_one_batch = left.left_bytes, left.at_least_one_batch
        nearest = self._ports.nearest if params.client is not None else None
        results: FetchResults = []
        for topic_partition, spec in specs:
            try:
                partition = (
                    self._partitions.get(topic_partition) or self._find(topic_partition)
                    if left is None
                    else self._find_of_topic(topic_partition, left.topic_ids)
                )
                if session is not None and _record_if_unchanged(
                    partition, params.replica_id, session[topic_partition], effects
                ):
                    continue
                if nearest is not None:
                    elsewhere = _redirect_consumer(nearest, partition, params, spec)
                    if elsewhere is not None:
                        results.append((topic_partition, elsewhere))
                        continue
                read = partition.read(
                    params, spec, left_bytes, at_least_one_batch=at_least_one_batch
                )
            except (ApiError, StorageError) as failure:
                error = self._answer_to(topic_partition, failure)
                self._counts_of(topic_partition.topic).note_read_error(error)
                results.append((topic_partition, FetchResult(error)))
                continue
            records = read.records
            if (
                records is not None
                and records.is_first_batch_incomplete
                and not params.is_max_bytes_hard
            ):
                # An incomplete batch would be useless to the client; it comes with a later fetch.
                records.release()
                records = FetchSlice(records.start)
            if params.replica_id >= 0 and records is not None:
                records = self._apply_quota(partition, params.replica_id, records)
            _, watermark, stable_offset, log_start_offset, log_end_offset, diverging = read
            result = new_tuple(
                FetchResult,
                (None, records, watermark, stable_offset, log_start_offset, diverging, None),
            )
            results.append((topic_partition, result))
            if records is not None and records.size_bytes:
                at_least_one_batch = False
                left_bytes = max(0, left_bytes - records.size_bytes)
            if effects is not None and params.replica_id >= 0 and diverging is None:
                effects += partition.record_follower_fetch(params.replica_id, spec, log_end_offset)
        if left is not None:
            left.left_bytes, left.at_least_one_batch = left_bytes, at_least_one_batch
        return results

    def _find_of_topic(
        self, topic_partition: TopicPartition, topic_ids: Mapping[str, str]
    ) -> Partition:
        """Return the partition that a fetch with topic ids names.

        Raises InconsistentTopicId if its log has another id than the request.
        """
        partition = self._find(topic_partition)
        requested, logged = topic_ids.get(topic_partition.topic), partition.log.topic_id
        if requested is not None and logged is not None and logged != requested:
            raise InconsistentTopicId(topic_partition, logged, requested)
        return partition

    def read_now(
        self, params: FetchParams, specs: Iterable[tuple[TopicPartition, FetchSpec]]
    ) -> FetchResults:
        """Read partitions without recording the follower's progress."""
        return self.read_partitions(params, specs, None)

    def record_position(
        self, replica_id: int, topic_partition: TopicPartition, spec: FetchSpec
    ) -> Sequence[Effect] | None:
        """Record the next fetch offset of a follower with a parked fetch, without a log read.

        Returns None, with nothing recorded, if a read would refuse the offset or find a divergence.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None:
            return None
        offset, _, leader_epoch, fetched_epoch, _ = spec
        if not partition.serves(leader_epoch):
            return None
        log = partition.log
        end = log.log_end_offset
        if not log.log_start_offset <= offset <= end:
            return None
        try:
            # Both logs end in the same epoch.
            is_parted = (
                fetched_epoch != log.epochs.latest_epoch
                and partition.find_divergence(spec) is not None
            )
            if is_parted:
                return None
            return partition.record_follower_fetch(replica_id, spec, end)
        except (ApiError, StorageError):
            return None

    def _apply_quota(
        self, partition: Partition, replica_id: int, records: FetchSlice
    ) -> FetchSlice:
        """Return the records for a follower, none if it is throttled (REPL-17)."""
        if self.is_throttled(partition, replica_id):
            records.release()
            return FetchSlice(records.start)
        self._ports.leader_quota.record(partition.topic_partition, records.size_bytes)
        return records

    def is_throttled(self, partition: Partition, replica_id: int) -> bool:
        """True if the leader's replication quota leaves the partition out of a replica's fetch.

        Only replicas outside of the ISR are throttled; `replica_id` −1 is a consumer, which never
        is.
        """
        return (
            replica_id >= 0
            and replica_id not in partition.in_sync.isr
            and self._ports.leader_quota.should_throttle(partition.topic_partition)
        )


def _record_if_unchanged(
    partition: Partition,
    replica_id: int,
    position: SessionPosition,
    effects: list[Effect] | None,
) -> bool:
    """Record a follower's progress if the partition has no change for its session; True then.

    The follower's progress is recorded here, with its effects in `effects` unless that is None,
    because no read does it. False: the partition has to be read.
    """
    if not is_unchanged(partition, replica_id, position):
        return False
    if effects is not None:
        spec = position.spec
        effects += partition.record_follower_fetch(replica_id, spec, spec.fetch_offset)
    return True


def _redirect_consumer(
    nearest: NearestReplica, partition: Partition, params: FetchParams, spec: FetchSpec
) -> FetchResult | None:
    """Return the result that sends a consumer to the replica in its rack; None to read here."""
    assert params.client is not None
    preferred = nearest.preferred_replica(partition, params.client, spec.fetch_offset)
    if preferred is None:
        return None
    partition.ensure_serves(spec.current_leader_epoch, is_leader_required=False)
    return FetchResult(
        None,
        None,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        preferred_replica=preferred,
    )
