"""The order in which hash maps of Scala and of Java give out what they keep by name.

A broker of Kafka tells what it keeps in a Scala hash map by name.

```
hash      String.hashCode: h = 31 * h + unit for each UTF-16 unit, 32 bits
improved  h ^ (h >>> 16)
table     16 chains, doubled as soon as 3/4 of it would be taken
chain     improved & (chains - 1); in a chain by the improved hash as a signed number
```

The order is that of the names alone: of when they came only names of one hash tell.

Java's map has the same table, which grows only when more than 3/4 of it is taken; within a chain
keys stay in the order in which they came.

Java's concurrent map grows as Scala's does, and never shrinks. New keys go behind those of their
chain; as it grows a chain is taken apart: its last run of keys that stay together keeps its order,
each key before that run is put in front.

Scala's immutable map keeps up to four keys in the order in which they came. More are in a tree:

```
improved  h + ~(h << 9), ^ >>> 14, + << 4, ^ >>> 10, 32 bits
node      32 places by five bits of it, the lowest first; keys that are alone in theirs, then the
          nodes of those that are not
```

Source: java.lang.String.hashCode, Scala 2.13's mutable.HashMap and immutable.HashMap; a real
broker's answers; java.util.HashMap, java.util.concurrent.ConcurrentHashMap of JDK 17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from engine.java_text import java_string_hash
from engine.model import TopicPartition

_CHAINS_MIN = 16
_UINT_MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_LONG_MIN = -(1 << 63)
#: How many keys an immutable map keeps as they came.
SMALL_MAP_MAX = 4
_PLACE_BITS, _PLACES_MASK, _HASH_BITS = 5, 31, 32
#: More names than there are keys of a broker, of its topics and loggers.
_KEPT_HASHES = 2048

K = TypeVar("K")


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Return names that are all different in the order of a hash map."""
    listed = list(names)
    chains = _CHAINS_MIN
    while len(listed) >= chains * 3 // 4:
        chains *= 2

    def place(name: str) -> tuple[int, int]:
        improved = _improved_hash(name)
        return improved & (chains - 1), (improved ^ _SIGN)

    return sorted(listed, key=place)


def partitions_in_hash_order(
    partitions: Iterable[TopicPartition], *, are_hosted: bool = False
) -> list[TopicPartition]:
    """Return partitions that are all different in the order of a Scala hash map of them.

    `are_hosted`: the keys are a broker's objects for them, which have a hash of their own.
    Source: TopicPartition.hashCode, kafka.cluster.Partition.hashCode.
    """
    listed = list(partitions)
    chains = _CHAINS_MIN
    while len(listed) >= chains * 3 // 4:
        chains *= 2

    def place(partition: TopicPartition) -> tuple[int, int]:
        topic, index = partition
        of_index = 31 + 17 * index if are_hosted else 31 * (31 + index)
        improved = spread_hash(of_index + java_string_hash(topic))
        return improved & (chains - 1), improved ^ _SIGN

    return sorted(listed, key=place)


def in_hash_tree_order(names: Iterable[str]) -> list[str]:
    """Return names that are all different in the order of the tree of an immutable hash map."""
    return _in_tree([(_tree_hash(java_string_hash(name)), name) for name in names], 0)


def partitions_in_immutable_order(
    partitions: Iterable[TopicPartition], *, have_topic_ids: bool = False
) -> list[TopicPartition]:
    """Return partitions that are all different in the order of an immutable map of them.

    `have_topic_ids`: the keys have topic ids too, which are all zero.
    Source: TopicPartition.hashCode, TopicIdPartition.hashCode.
    """
    listed = list(partitions)
    if len(listed) <= SMALL_MAP_MAX:
        return listed
    seed = 2 * 31 * 31 if have_topic_ids else 31 * 31
    of_topic = {topic: seed + java_string_hash(topic) for topic in {key.topic for key in listed}}
    return _in_tree([(_tree_hash(of_topic[key[0]] + 31 * key[1]), key) for key in listed], 0)


def by_topic_in_hash_order(
    partitions: Iterable[TopicPartition],
    in_order: Callable[[Iterable[TopicPartition]], list[TopicPartition]] = partitions_in_hash_order,
) -> dict[str, list[TopicPartition]]:
    """Return partitions that are all different by topic, as Scala groups those of a map.

    Those of each topic are in a map of that kind, which `in_order` tells, topics in a tree.
    Source: scala.collection.IterableOps.groupBy.
    """
    topics: dict[str, list[TopicPartition]] = {}
    for key in in_order(partitions):
        topics.setdefault(key.topic, []).append(key)
    return {name: in_order(topics[name]) for name in in_hash_tree_order(topics)}


def _in_tree(hashed: list[tuple[int, K]], shift: int) -> list[K]:
    """Return keys with their hashes in the order of a node `shift` bits below the root."""
    if shift >= _HASH_BITS:
        return [key for _, key in hashed]
    places: dict[int, list[tuple[int, K]]] = {}
    for entry in hashed:
        places.setdefault(entry[0] >> shift & _PLACES_MASK, []).append(entry)
    ordered = [places[place] for place in sorted(places)]
    found = [entries[0][1] for entries in ordered if len(entries) == 1]
    for entries in ordered:
        if len(entries) > 1:
            found += _in_tree(entries, shift + _PLACE_BITS)
    return found


def _tree_hash(number: int) -> int:
    """Return a hash as an immutable map improves it. Source: scala.collection.Hashing.improve."""
    number = number + ~(number << 9) & _UINT_MASK
    number ^= number >> 14
    number = number + (number << 4) & _UINT_MASK
    return number ^ number >> 10


def in_java_hash_order(names: Iterable[str]) -> list[str]:
    """Return names that are all different in the order of a Java hash map they were put into.

    Differs: chains of eight and more, which Java turns into trees, are in order of arrival too.
    """
    listed = list(names)
    mask = java_chains(len(listed)) - 1
    return sorted(listed, key=lambda name: _improved_hash(name) & mask)


def in_concurrent_hash_order(names: Iterable[str], held_count: int = 0) -> list[str]:
    """Return names that are all different in the order of a concurrent map they were put into.

    `held_count` is how many names the map has held at most; those that are gone are taken for such
    that did not change the order of others as it grew.

    Differs: chains of eight and more, which Java turns into trees, are in order of arrival too.
    """
    table: list[list[str]] = [[] for _ in range(_CHAINS_MIN)]
    for count, name in enumerate(names, 1):
        table[_improved_hash(name) & (len(table) - 1)].append(name)
        if count >= len(table) * 3 // 4:
            table = _grown(table)
    while held_count >= len(table) * 3 // 4:
        table = _grown(table)
    return [name for chain in table for name in chain]


def _grown(table: list[list[str]]) -> list[list[str]]:
    """Return a table of twice as many chains. Source: ConcurrentHashMap.transfer."""
    size = len(table)
    halves = [_split(chain, size) for chain in table]
    return [low for low, _ in halves] + [high for _, high in halves]


def _split(chain: list[str], bit: int) -> tuple[list[str], list[str]]:
    """Return the names of a chain whose hash lacks a bit, and those that have it."""
    is_high = [bool(_improved_hash(name) & bit) for name in chain]
    run = len(chain)
    while run and is_high[run - 1] == is_high[-1]:
        run -= 1
    halves: tuple[list[str], list[str]] = ([], [])
    if chain:
        halves[is_high[-1]].extend(chain[run:])
    for name, high in zip(chain[:run], is_high, strict=False):
        halves[high].insert(0, name)
    return halves


def numbers_in_java_hash_order(numbers: Iterable[int]) -> list[int]:
    """Return int64 numbers that are all different in the order of a Java hash map of `Long`s."""
    listed = list(numbers)
    mask = java_chains(len(listed)) - 1
    return sorted(listed, key=lambda number: spread_hash(number ^ number >> 32) & mask)


def partitions_in_java_hash_order(
    partitions: Iterable[TopicPartition], *, are_computed: bool = False
) -> list[TopicPartition]:
    """Return partitions that are all different in the order of a Java hash map of them.

    `are_computed`: they were added by `compute`, which puts a key before others of its chain, not
    by `put`. Source: TopicPartition.hashCode, HashMap.compute.
    """
    listed = list(partitions)
    if are_computed:
        listed.reverse()
    mask = java_chains(len(listed)) - 1

    def place(partition: TopicPartition) -> int:
        hashed = 31 * (31 + partition.partition) + java_string_hash(partition.topic)
        return spread_hash(hashed) & mask

    return sorted(listed, key=place)


def numbers_in_long_map_order(numbers: Iterable[int], capacity: int) -> list[int]:
    """Return int64 numbers that are all different in the order of a Scala `LongMap`.

    `capacity` is for how many keys the map was made.
    Source: scala.collection.mutable.LongMap, whose slots are hashed as MurmurHash3 ends.
    """
    mask = (1 << max(capacity - 1, 0).bit_length()) - 1 | 7
    slots: dict[int, int] = {}
    for number in numbers:
        # Neither has a slot: they are their own negatives.
        if number in (0, _LONG_MIN):
            continue
        _claim_slot(slots, number, mask)
        if len(slots) * 2 > mask:
            mask = mask << 1 | 1
            kept = [slots[slot] for slot in sorted(slots)]
            slots = {}
            for key in kept:
                _claim_slot(slots, key, mask)
    listed = set(numbers)
    apart = [number for number in (0, _LONG_MIN) if number in listed]
    return apart + [slots[slot] for slot in sorted(slots)]


def _claim_slot(slots: dict[int, int], number: int, mask: int) -> None:
    folded = (number ^ (number >> 32 & _UINT_MASK)) & _UINT_MASK
    mixed = spread_hash(folded) * 0x85EBCA6B & _UINT_MASK
    slot, tries = (mixed ^ mixed >> 13) & mask, 0
    while slot in slots:
        tries += 1
        slot = slot + 2 * (tries + 1) * tries - 3 & mask
    slots[slot] = number


def java_chains(size: int) -> int:
    """Return how many chains a Java hash map has that has held so many keys at most."""
    chains = _CHAINS_MIN
    while size > chains * 3 // 4:
        chains *= 2
    return chains


def spread_hash(number: int) -> int:
    """Return a hash with its upper half mixed into the lower one, as both maps do."""
    number &= _UINT_MASK
    return number ^ (number >> 16)


@lru_cache(maxsize=_KEPT_HASHES)
def _improved_hash(name: str) -> int:
    return spread_hash(java_string_hash(name))
