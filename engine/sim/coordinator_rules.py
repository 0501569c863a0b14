"""Rule G3: the state of a coordinator that has loaded a partition agrees with the partition's log.

```
check    broker 2 leads __consumer_offsets-0 and serves its groups: the log up to the start of its
         epoch, and the records written since, are compared with its state of each group
```

The coordinator's own log is used, not those of other replicas: a deposed coordinator that does not
know of it is checked too. A broker that keeps leading in a later epoch keeps its groups, including
the effects of failed commits: its groups are compared with the log from the epoch in which they
were loaded. Transactional ids are loaded again in each epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.broker.broker import Broker
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.sim.coordinator_folds import GroupFold, TransactionFold
from engine.sim.group_rules import OFFSETS_TOPIC
from engine.sim.logs import content_batches
from engine.sim.node import SimulatedBroker
from engine.sim.transaction_rules import TRANSACTION_TOPIC


class _Led(NamedTuple):
    """A partition that a broker leads, in one life of its process."""

    broker_id: int
    life: int
    partition: TopicPartition


class _Reading:
    """The state from a leader's log since its load, and the offset that was read up to."""

    __slots__ = ("end", "fold", "loaded", "loaded_epoch")

    def __init__(self, partition: Partition, loaded: EpochStart, loaded_epoch: int | None) -> None:
        """Read the log up to the start of the leader's epoch."""
        #: Epoch in which the leader loaded the partition, and its start offset.
        self.loaded = loaded
        #: Leader epoch of the coordinator's load; None if it is unknown.
        self.loaded_epoch = loaded_epoch
        self.fold = _FOLDS[partition.topic_partition.topic]()
        self.fold.take(content_batches(partition, 0, loaded.start_offset))
        self.fold.on_leader_epoch()
        #: Offset up to which the log was read (exclusive).
        self.end = loaded.start_offset

    def is_of(self, partition: Partition, loaded_epoch: int | None) -> bool:
        """Return True if the leader still serves the state that it loaded in `loaded_epoch`.

        A leader that restarts may lead on in the same epoch. A leader that lost its partition and
        got it back has loaded it again, even if its log was truncated in between.
        """
        if loaded_epoch != self.loaded_epoch:
            return False
        if self.loaded.epoch != partition.leader_epoch and isinstance(self.fold, TransactionFold):
            return False
        return has_epoch_at(partition.log.epochs.entries, self.loaded)

    def read_to_end(self, partition: Partition) -> None:
        """Apply the batches that were appended to the leader's log since the last call."""
        end = partition.log.log_end_offset
        if self.end < end:
            self.fold.take(content_batches(partition, self.end, end))
            self.end = end


def has_epoch_at(entries: Sequence[EpochStart], loaded: EpochStart) -> bool:
    """Return True if a log's epochs still have the epoch `loaded` at its start offset."""
    of_before = [entry for entry in entries if entry.start_offset <= loaded.start_offset]
    return bool(of_before) and of_before[-1].epoch == loaded.epoch


def _loaded_epoch(broker: Broker, key: TopicPartition) -> int | None:
    """Return the epoch in which a leader loaded a partition of groups; None for other topics."""
    is_of_groups = key.topic == OFFSETS_TOPIC
    return broker.groups.registry.loaded_epoch(key.partition) if is_of_groups else None


def _loaded_at(partition: Partition, now: EpochStart, epoch: int | None) -> EpochStart:
    """Return the start of the epoch in which a leader loaded a partition.

    `now` is the start of its present epoch, which is returned if `epoch` is None or has no later
    entry: a log has no entry of an epoch in which nothing was appended.
    """
    if epoch is None:
        return now
    later = (entry for entry in partition.log.epochs.entries if entry.epoch >= epoch)
    return next(later, now)


class CoordinatorRules:
    """Compares the groups and transactions in each coordinator with its log."""

    def __init__(
        self,
        broke: Callable[[str, str, TopicPartition | None], None],
        nodes: Mapping[int, SimulatedBroker],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._broke = broke
        self._nodes = nodes
        #: The logs of present leaders, as far as they were read.
        self._readings: dict[_Led, _Reading] = {}
        #: How many groups and transactional ids were compared, as proof that the rule is applied.
        self.compared_count = 0

    def check(self) -> None:
        """Compare each coordinator's groups and transactions with its partition's log (G3)."""
        readings: dict[_Led, _Reading] = {}
        for broker_id, node in self._nodes.items():
            if node.broker is None:
                continue
            for key, partition in node.broker.storage.replica_manager.partitions.items():
                start = partition.epoch_start_offset
                if key.topic not in _FOLDS or not partition.is_leader or start is None:
                    continue
                led = _Led(broker_id, node.machine.life, key)
                reading = self._readings.get(led)
                epoch = _loaded_epoch(node.broker, key)
                if reading is None or not reading.is_of(partition, epoch):
                    now = EpochStart(partition.leader_epoch, start)
                    reading = _Reading(partition, _loaded_at(partition, now, epoch), epoch)
                readings[led] = reading
                reading.read_to_end(partition)
                self._compare(node.broker, key, reading.fold)
        self._readings = readings

    def _compare(
        self, broker: Broker, key: TopicPartition, fold: GroupFold | TransactionFold
    ) -> None:
        """Report the groups or transactions of a coordinator that contradict its log (G3)."""
        faults = (
            _group_faults(broker, key, fold)
            if isinstance(fold, GroupFold)
            else _transaction_faults(broker, fold)
        )
        for name, fault in faults:
            self.compared_count += 1
            if fault:
                text = f"{key}: broker {broker.broker_id} knows of {name} {fault}"
                self._broke("G3", text, None)


_FOLDS: dict[str, type[GroupFold | TransactionFold]] = {
    OFFSETS_TOPIC: GroupFold,
    TRANSACTION_TOPIC: TransactionFold,
}


def _group_faults(
    broker: Broker, key: TopicPartition, fold: GroupFold
) -> Iterator[tuple[str, str]]:
    """Yield each group of a partition, with the contradiction to the log as text ("" if none)."""
    registry = broker.groups.registry
    known = {one for one in registry.groups if registry.partition_of(one) == key.partition}
    for group_id in sorted(known | fold.group_ids()):
        if not registry.check_served(group_id):
            yield group_id, fold.fault_of(group_id, registry.groups.get(group_id))


def _transaction_faults(broker: Broker, fold: TransactionFold) -> Iterator[tuple[str, str]]:
    """Yield each transactional id, with the contradiction to the log as text ("" if none)."""
    registry = broker.transactions.coordinator.registry
    for transactional_id in sorted(fold.transactional_ids()):
        found = registry.find(transactional_id)
        if not found.error_code:
            yield transactional_id, fold.fault_of(transactional_id, found.transaction)
