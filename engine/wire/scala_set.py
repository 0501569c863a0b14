"""The order in which Scala 2.13 iterates over a mutable set of topic partitions.

Kafka 3.9's dump tool prints the partitions of a transaction in this order.

```
hash     31 * (31 + partition) + String.hashCode(topic), as int32, then h ^ h >>> 16
table    2^n buckets (16 at first), index = hash & (buckets - 1); a bucket is sorted by hash
growth   a batch of k makes room for (k + 1) / 0.75 buckets, existing elements not counted;
         only batches of up to 4 also double the table if one more element would reach 3/4 of it
         (larger batches are of another class, whose addition skips this check)
```

Source: scala.collection.mutable.HashSet, org.apache.kafka.common.TopicPartition.hashCode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.java_text import java_string_hash
from engine.model import TopicPartition

_BUCKETS_AT_FIRST: Final = 16
_SMALL_BATCH: Final = 4


def _int32(value: int) -> int:
    """Return an integer as Java's int has it, wrapped to 32 bits."""
    return (value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000


def _hash(partition: TopicPartition) -> int:
    """Return the hash by which a Scala set orders a partition."""
    plain = 31 * (31 + partition.partition) + java_string_hash(partition.topic)
    return _int32(plain ^ (plain & 0xFFFF_FFFF) >> 16)


def scala_order(batches: Iterable[Sequence[TopicPartition]]) -> list[TopicPartition]:
    """Return the order in which a Scala mutable set of partitions iterates after adding batches.

    Each batch was an immutable set before, so repetitions in it are ignored.
    """
    buckets = _BUCKETS_AT_FIRST
    hashes: dict[TopicPartition, int] = {}
    for batch in batches:
        distinct = dict.fromkeys(batch)
        while int((len(distinct) + 1) / 0.75) > buckets:
            buckets *= 2
        for partition in distinct:
            if len(distinct) <= _SMALL_BATCH and len(hashes) + 1 >= buckets * 3 // 4:
                buckets *= 2
            hashes.setdefault(partition, _hash(partition))
    # Equal hashes stay in the order in which they came: sorting is stable.
    return sorted(hashes, key=lambda name: (hashes[name] & buckets - 1, hashes[name]))
