"""Movements of partitions from member to member within one assignment.

If a partition should move from A to B, and another partition of its topic moved from B to A before,
that one moves back instead. A move from A to B followed by one from B to C counts as one from A to
C.

Source: AbstractStickyAssignor.PartitionMovements of 3.9.1.
"""

from __future__ import annotations

from engine.hash_order import java_chains, spread_hash
from engine.java_text import java_string_hash
from engine.model import TopicPartition

_ConsumerPair = tuple[str, str]


class PartitionMovements:
    """The moves of one assignment up to now."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, _ConsumerPair] = {}
        self._moved: dict[str, dict[_ConsumerPair, _MovedPartitions]] = {}

    def partition_to_move(
        self, partition: TopicPartition, source: str, target: str
    ) -> TopicPartition:
        """Return the partition to move from `source` to `target`.

        It is a partition of the same topic that moved the opposite way before, else `partition`.
        """
        if partition in self._pairs:
            source = self._pairs[partition][0]
        back = self._moved.get(partition.topic, {}).get((target, source))
        return partition if back is None else back.first()

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        """Record the move of a partition between two members.

        Two moves of a partition count as one from the first to the last member.
        """
        pair = self._pairs.pop(partition, None)
        if pair is None:
            self._add(partition, (source, target))
            return
        of_topic = self._moved[partition.topic]
        if not of_topic[pair].discard(partition):
            del of_topic[pair]
        if pair[0] != target:
            self._add(partition, (pair[0], target))

    def _add(self, partition: TopicPartition, pair: _ConsumerPair) -> None:
        """Record a partition's move under the partition and under its topic."""
        self._pairs[partition] = pair
        of_topic = self._moved.setdefault(partition.topic, {})
        of_topic.setdefault(pair, _MovedPartitions()).add(partition)


class _MovedPartitions:
    """Partitions of one topic in the order of a Java hash set, whose table never shrinks."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, int] = {}
        self._size_max = 0

    def add(self, partition: TopicPartition) -> None:
        """Add a partition with its hash, which decides its place as in Java's set."""
        hashed = 31 * (31 + partition.partition) + java_string_hash(partition.topic)
        self._partitions[partition] = spread_hash(hashed)
        self._size_max = max(self._size_max, len(self._partitions))

    def discard(self, partition: TopicPartition) -> int:
        """Remove a partition if it is present; return the number of remaining partitions."""
        self._partitions.pop(partition, None)
        return len(self._partitions)

    def first(self) -> TopicPartition:
        """Return the first partition in the order of Java's set."""
        mask = java_chains(self._size_max) - 1
        return min(self._partitions, key=lambda partition: self._partitions[partition] & mask)
