"""Sort partitions and names in the order of Java's hash sets and maps, as some tools print them.

A set starts with 16 buckets, and doubles them when more than three quarters are used.

Source: java.util.HashMap of JDK 17, TopicPartition.hashCode.

Differs: partitions of one bucket are sorted, also in a bucket of eight or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from engine.java_text import java_string_hash
from engine.model import TopicPartition

K = TypeVar("K")

_BUCKETS_MIN = 16
_INT_MASK = 0xFFFF_FFFF


def in_java_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the distinct partitions in the order in which a Java HashSet has them."""
    return _by_bucket(sorted(set(keys)), _hash_of_partition)


def in_java_map_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the distinct partitions in the order of a Java HashMap, filled in the given order."""
    return _by_bucket(list(dict.fromkeys(keys)), _hash_of_partition)


def names_in_java_order(names: Iterable[str]) -> list[str]:
    """Return the distinct names in the order of a Java HashSet, filled in the given order."""
    return _by_bucket(list(dict.fromkeys(names)), java_string_hash)


def names_in_sized_java_order(names: Iterable[str]) -> list[str]:
    """Return the distinct names in the order of a Java HashMap with their number as capacity."""
    return _by_bucket(list(dict.fromkeys(names)), java_string_hash, 1)


def names_in_copied_java_order(copied: Iterable[str], added: Iterable[str] = ()) -> list[str]:
    """Return the names in the order of a Java HashMap: a copy of one with `copied`.

    `added` were added to the copy. A copy has the smallest table for its size, which determines the
    order.
    """
    copied = list(dict.fromkeys(copied))
    buckets = _BUCKETS_MIN
    if copied:
        buckets = 1
        while buckets < int(len(copied) / 0.75 + 1):
            buckets *= 2
    return _by_bucket(list(dict.fromkeys([*copied, *added])), java_string_hash, buckets)


def _by_bucket(keys: list[K], hash_of: Callable[[K], int], buckets: int = _BUCKETS_MIN) -> list[K]:
    """Sort keys by their bucket in a Java HashMap that was created with `buckets` buckets.

    It grows as it is filled. Java iterates over buckets, and keys of one bucket keep their order.
    """
    while len(keys) * 4 > buckets * 3:
        buckets *= 2

    def bucket(key: K) -> int:
        """Return the bucket of a key in a table of the final size."""
        hashed = hash_of(key) & _INT_MASK
        return (hashed ^ (hashed >> 16)) & (buckets - 1)

    # Sorting is stable: keys of one bucket keep their order.
    return sorted(keys, key=bucket)


def _hash_of_partition(key: TopicPartition) -> int:
    """Return the hashCode of Java's TopicPartition, without its wrap to 32 bits."""
    return 31 * (31 + key.partition) + java_string_hash(key.topic)
