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

Source: java.lang.String.hashCode, Scala 2.13's mutable.HashMap; a real broker's answers;
java.util.HashMap, java.util.concurrent.ConcurrentHashMap of JDK 17.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from engine.java_text import java_string_hash
from engine.model import TopicPartition

_CHAINS_MIN = 16
_UINT_MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_LONG_MIN = -(1 << 63)
#: More names than there are keys of a broker, of its topics and loggers.
_KEPT_HASHES = 2048
#: The topics of a large cluster.
_KEPT_SET_HASHES = 16_384
#: Scala's sets of up to four elements keep the order in which these came.
SMALL_SET_MAX = 4

_Key = TypeVar("_Key")


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


def partition_indexes_in_hash_order(topic: str, indexes: Iterable[int], size: int) -> list[int]:
    """Return partitions of a topic in the order of a Scala hash map of `size` partitions.

    Source: as `partitions_in_hash_order`.
    """
    chains, of_topic = _CHAINS_MIN, java_string_hash(topic)
    while size >= chains * 3 // 4:
        chains *= 2

    def place(index: int) -> tuple[int, int]:
        improved = spread_hash(31 * (31 + index) + of_topic)
        return improved & (chains - 1), improved ^ _SIGN

    return sorted(indexes, key=place)


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
    listed = list(numbers)
    # Neither has a slot: they are their own negatives.
    apart = [number for number in (0, _LONG_MIN) if number in listed]
    hashed = ((_finished(n ^ n >> 32), n) for n in listed if n not in apart)
    return apart + _in_slots(hashed, capacity)


def in_immutable_set_order(names: Collection[str]) -> Iterator[str]:
    """Yield names that are all different in the order of Scala's immutable set of them.

    Up to four stay in the order given, more are in an immutable hash set.
    """
    return iter(names) if len(names) <= SMALL_SET_MAX else in_immutable_hash_set_order(names)


def in_immutable_hash_set_order(names: Iterable[str]) -> Iterator[str]:
    """Yield names that are all different in the order of Scala's immutable hash set of them.

    Only sets of more than `SMALL_SET_MAX` are of this kind; smaller ones stay in the order given.
    Names are in a tree whose nodes have 32 slots: five bits of the hash at a time, the lowest
    first; a node gives out its names by slot, then its subtrees by slot.

    Source: scala.collection.immutable.HashSet, scala.collection.Hashing.improve.
    """
    return _tree_names([(immutable_set_hash(name), name) for name in names])


def _tree_names(hashed: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield names in the order of the tree; `hashed` without the bits of the levels above."""
    slots: list[list[tuple[int, str]]] = [[] for _ in range(32)]
    for improved, name in hashed:
        slots[improved & 31].append((improved >> 5, name))
    yield from (names[0][1] for names in slots if len(names) == 1)
    for names in slots:
        if len(names) < 2:
            continue
        if all(bits == names[0][0] for bits, _ in names):
            # Names of one hash share a node.
            yield from (name for _, name in names)
        else:
            yield from _tree_names(names)


@lru_cache(maxsize=_KEPT_SET_HASHES)
def immutable_set_hash(name: str) -> int:
    """Return the hash that the tree of a set goes by, 32 bits; it is kept for later calls.

    Source: scala.collection.Hashing.improve.
    """
    hashed = java_string_hash(name)
    hashed = hashed + ~(hashed << 9) & _UINT_MASK
    hashed ^= hashed >> 14
    hashed = hashed + (hashed << 4) & _UINT_MASK
    return hashed ^ hashed >> 10


def in_any_ref_map_order(names: Iterable[str], capacity: int) -> list[str]:
    """Return names that are all different in the order of a Scala `AnyRefMap`.

    `capacity` is for how many keys the map was made.
    Source: scala.collection.mutable.AnyRefMap, whose slots are hashed as MurmurHash3 begins to end.
    """
    return _in_slots(((_ref_hash(name), name) for name in names), capacity)


def _ref_hash(name: str) -> int:
    # No name has the hash of a free slot.
    return _finished(java_string_hash(name)) & 0x7FFFFFFF or 0x41081989


def _finished(number: int) -> int:
    """Return 32 bits of a number, mixed by the first half of MurmurHash3's end."""
    mixed = spread_hash(number & _UINT_MASK) * 0x85EBCA6B & _UINT_MASK
    return mixed ^ mixed >> 13


def _in_slots(hashed: Iterable[tuple[int, _Key]], capacity: int) -> list[_Key]:
    """Return keys, given with their hashes, by their slots in an open table made for `capacity`.

    It is doubled, and filled again in the order of its slots, once more than half is taken.
    """
    mask = (1 << max(capacity - 1, 0).bit_length()) - 1 | 7
    slots: dict[int, tuple[int, _Key]] = {}
    for key in hashed:
        _claim_slot(slots, key, mask)
        if len(slots) * 2 > mask:
            mask = mask << 1 | 1
            known = [slots[slot] for slot in sorted(slots)]
            slots = {}
            for known_key in known:
                _claim_slot(slots, known_key, mask)
    return [slots[slot][1] for slot in sorted(slots)]


def _claim_slot(slots: dict[int, tuple[int, _Key]], key: tuple[int, _Key], mask: int) -> None:
    slot, tries = key[0] & mask, 0
    while slot in slots:
        tries += 1
        slot = slot + 2 * (tries + 1) * tries - 3 & mask
    slots[slot] = key


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
