"""The order in which Java's hash sets give partitions back, which some lines are printed in.

A set grows to twice its buckets once it holds more than three quarters of them, from 16 on.

Source: java.util.HashMap of JDK 17, TopicPartition.hashCode.
Differs: partitions of one bucket come in order, those of a bucket of eight and more as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.java_text import java_string_hash
from engine.model import TopicPartition

_BUCKETS_MIN = 16
_INT_MASK = 0xFFFF_FFFF


def in_java_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions in the order of a hash set that holds each of them once."""
    ordered = sorted(set(keys))
    buckets = _BUCKETS_MIN
    while len(ordered) * 4 > buckets * 3:
        buckets *= 2
    # Sorting is stable: partitions of one bucket stay in order.
    return sorted(ordered, key=lambda key: _spread(key) & (buckets - 1))


def _spread(key: TopicPartition) -> int:
    hashed = (31 * (31 + key.partition) + java_string_hash(key.topic)) & _INT_MASK
    return hashed ^ (hashed >> 16)
