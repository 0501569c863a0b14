"""The replica manager of a broker: its partitions, the operations on them, and delayed operations.

```
 Appends ──────────┐                      ┌─> HostedPartitions ─> Partition
 Fetches ──────────┼─ effects, waits ─────┤
 RecordDeletions ──┘                      └─> EffectPerformer ─> DelayedOperations, ports
```

A result that is complete at once is returned itself, otherwise a promise of it. The promise is kept
on the thread of the loop, possibly before the call returns; its watchers must not raise, since they
run within other requests.

Source: LOG-10, PUR-4 … PUR-12, REPL-17; Kafka's ReplicaManager.
Differs: there is no tiered storage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from engine.host.ports import Clock
from engine.model import TopicPartition
from engine.replication.appends import Appends
from engine.replication.delayed_operations import DelayedOperations
from engine.replication.effect_performer import EffectPerformer
from engine.replication.effects import ProposeIsr
from engine.replication.fetches import Fetches
from engine.replication.hosted_partitions import HostedPartitions
from engine.replication.partition import Partition
from engine.replication.partition_access import PartitionAccess
from engine.replication.partition_reader import PartitionReader
from engine.replication.partition_types import IsrDecision
from engine.replication.ports import ReplicaManagerConfig, ReplicaManagerPorts
from engine.replication.record_deletions import RecordDeletions
from engine.replication.role_log_messages import log_isr
from engine.timing.purgatory import PurgatoryCount


class IsrCounts:
    """Counts of ISR expansions, shrinks and failed updates. Source: AlterPartitionListener."""

    def __init__(self) -> None:
        self.expands = 0
        self.shrinks = 0
        self.failed_updates = 0

    def count_decision(self, before: Collection[int], after: Collection[int]) -> None:
        """Count the result of an ISR proposal: the ISR has grown or shrunk.

        An unchanged ISR means a failure.
        """
        if len(after) > len(before):
            self.expands += 1
        elif len(after) < len(before):
            self.shrinks += 1
        else:
            self.failed_updates += 1


class ReplicaManager:
    """All partitions with a replica on this broker. Source: LOG-10."""

    def __init__(
        self,
        clock: Clock,
        ports: ReplicaManagerPorts,
        config: ReplicaManagerConfig | None = None,
    ) -> None:
        """Create the manager and its parts, without partitions."""
        self._clock = clock
        self._ports = ports
        hosted = self._hosted = HostedPartitions(ports.is_known, ports.on_log_dir_offline)
        self._partitions = hosted.partitions
        #: Counts of produces and fetches by topic.
        self.topic_counts = hosted.topic_counts
        #: Counts of ISR changes.
        self.isr_counts = IsrCounts()
        reader = PartitionReader(hosted, ports)
        delayed = self._delayed = DelayedOperations(
            config or ReplicaManagerConfig(),
            clock.monotonic_ms(),
            reader.read_now,
            ports.on_waiting,
        )
        performer = EffectPerformer(hosted.partitions, delayed, ports)
        access = PartitionAccess(clock, hosted, delayed, performer)
        self.appends = Appends(access)
        self.fetches = Fetches(access, reader, ports.leader_quota)
        deletions = RecordDeletions(access)
        # The parts' methods are methods of the manager, without a further call.
        self.is_offline, self.find, self.answer_to = (
            hosted.is_offline,
            hosted.find,
            hosted.answer_to,
        )
        self.append_records = self.appends.append_records
        self.append_records_fast = self.appends.append_records_fast
        self.append_own_fast = self.appends.append_own_fast
        self.fetch, self.wait_fast = self.fetches.fetch, self.fetches.wait_fast
        self.delete_records = deletions.delete_records
        self.perform = performer.perform

    # Partitions

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return a view of the online partitions."""
        return self._partitions

    @property
    def offline_count(self) -> int:
        """Return the number of partitions on failed log directories."""
        return self._hosted.offline_count

    @property
    def purgatory_counts(self) -> dict[str, PurgatoryCount]:
        """Return the counts of waiting operations by the names of Kafka's purgatories."""
        delayed = self._delayed
        return {
            "DeleteRecords": delayed.deletes.count,
            "Fetch": delayed.fetches.count,
            "Produce": delayed.produces.count,
        }

    @property
    def delayed_produce_count(self) -> int:
        """Return the number of produces in purgatory."""
        return self._delayed.produces.delayed_count

    @property
    def delayed_fetch_count(self) -> int:
        """Return the number of fetches in purgatory."""
        return self._delayed.fetches.delayed_count

    @property
    def delayed_delete_count(self) -> int:
        """Return the number of DeleteRecords in purgatory."""
        return self._delayed.deletes.delayed_count

    @property
    def sends_elsewhere(self) -> bool:
        """True if consumers may be sent to a replica in their rack (a replica selector is set)."""
        return self._ports.nearest is not None

    def add(self, partition: Partition) -> None:
        """Add a partition, which is online from now on."""
        self._hosted.add(partition)

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Remove and return a partition; stop its fetching and complete its delayed operations."""
        partition = self._hosted.remove(topic_partition)
        self._ports.fetching.stop(topic_partition)
        self._ports.moving.stop(topic_partition)
        self._delayed.check_all(topic_partition)
        return partition

    def mark_offline(self, *topic_partitions: TopicPartition) -> None:
        """Respond KAFKA_STORAGE_ERROR for partitions of a failed log directory, until `add`.

        All of them go offline before delayed operations complete: no fetch may get records of a
        failed directory that were never flushed.
        """
        for topic_partition in topic_partitions:
            self._hosted.mark_offline(topic_partition)
            self._ports.fetching.stop(topic_partition)
            self._ports.moving.stop(topic_partition)
        for topic_partition in topic_partitions:
            self._delayed.check_all(topic_partition)

    # In-sync sets and time

    def on_isr_decided(self, proposal: ProposeIsr, decision: IsrDecision) -> None:
        """Pass the controller's response to its partition, if the partition is still online.

        Source: Partition.submitAlterPartition.
        """
        partition = self._partitions.get(proposal.topic_partition)
        if partition is None:
            return
        before, is_awaited = partition.in_sync.committed, partition.is_in_flight(proposal)
        effects = partition.on_isr_decided(proposal, decision)
        after = partition.in_sync.committed
        if after != before:
            log_isr(partition)
        if is_awaited:
            self.isr_counts.count_decision(before, after)
        self.perform(effects)

    def advance(self) -> None:
        """Complete the delayed operations whose deadline has passed."""
        self._delayed.expire(self._clock.monotonic_ms())

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline (monotonic), None if no operation waits."""
        return self._delayed.next_deadline_ms()

    def shrink_isrs(self) -> None:
        """Propose to remove followers that lag from ISRs; the isr-expiration task (SCH-2)."""
        for partition in tuple(self._partitions.values()):
            self.perform(partition.maybe_shrink_isr())

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks for the checkpoint (PART-13)."""
        return {key: partition.high_watermark for key, partition in self._partitions.items()}

    def stop(self) -> None:
        """Complete every delayed operation as at its deadline, and refuse all appends."""
        self.appends.stop()
        try:
            self._delayed.drain()
        finally:
            self.fetches.large.stop()
