"""The iteration order of keys in hash maps of Scala and Java.

Some responses of Kafka's brokers list keys in the iteration order of such a map.

```
hash      String.hashCode: h = 31 * h + unit for each UTF-16 unit, 32 bits
improved  h ^ (h >>> 16)
table     16 chains, doubled as soon as 3/4 of it would be used
chain     improved & (chains - 1); in a chain by the improved hash as a signed number
```

The order depends only on the names, except for names with equal hashes.

Java's map has the same table, which is doubled only when more than 3/4 of it is used; within a
chain, keys are in insertion order.

Java's concurrent map is doubled like Scala's, and never shrinks. New keys are appended to their
chain. When the table is doubled, each chain is split: its last run of keys with the same new chain
keeps its order, and each key before that run is put in front.

Scala's immutable map keeps up to four keys in insertion order. More keys are in a tree:

```
improved  h + ~(h << 9), ^ >>> 14, + << 4, ^ >>> 10, 32 bits
node      32 places by five bits of it, lowest bits first; first the keys that are alone in their
          place, then the child nodes
```

Source: java.lang.String.hashCode, Scala 2.13's mutable.HashMap and immutable.HashMap; a real
broker's answers; java.util.HashMap, java.util.concurrent.ConcurrentHashMap of JDK 17.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from engine.java_text import java_string_hash
from engine.model import TopicPartition

_CHAINS_MIN = 16
_UINT_MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_LONG_MIN = -(1 << 63)
#: Up to how many keys an immutable map or set keeps in insertion order.
SMALL_MAP_MAX = 4
_PLACE_BITS, _PLACES_MASK = 5, 31
#: Cache size: more names than the settings of a broker, its topics and loggers.
_KEPT_HASHES = 2048
#: Cache size: the topics of a large cluster.
_KEPT_SET_HASHES = 16_384

_Key = TypeVar("_Key")


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Return distinct names in the iteration order of Scala's `mutable.HashMap`."""
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
    """Return distinct partitions in the iteration order of Scala's `mutable.HashMap`.

    With `are_hosted` the keys are a broker's Partition objects, which have a different hash.

    Source: TopicPartition.hashCode, kafka.cluster.Partition.hashCode.

    """
    listed = list(partitions)
    chains = _CHAINS_MIN
    while len(listed) >= chains * 3 // 4:
        chains *= 2

    def place(partition: TopicPartition) -> tuple[int, int]:
        """Return the chain of a partition in the table, and its order within it."""
        topic, index = partition
        of_index = 31 + 17 * index if are_hosted else 31 * (31 + index)
        improved = spread_hash(of_index + java_string_hash(topic))
        return improved & (chains - 1), improved ^ _SIGN

    return sorted(listed, key=place)


def partition_indexes_in_hash_order(topic: str, indexes: Iterable[int], size: int) -> list[int]:
    """Return partition numbers of a topic in the iteration order of Scala's `mutable.HashMap`.

    `size` is the number of all partitions in the map, of this topic and others: it determines the
    size of the table.

    Source: as `partitions_in_hash_order`.

    """
    chains, of_topic = _CHAINS_MIN, java_string_hash(topic)
    while size >= chains * 3 // 4:
        chains *= 2

    def place(index: int) -> tuple[int, int]:
        improved = spread_hash(31 * (31 + index) + of_topic)
        return improved & (chains - 1), improved ^ _SIGN

    return sorted(indexes, key=place)


def partitions_in_immutable_order(
    partitions: Iterable[TopicPartition], *, have_topic_ids: bool = False
) -> list[TopicPartition]:
    """Return distinct partitions in the iteration order of Scala's `immutable.Map`.

    Up to four keep the given order. With `have_topic_ids` the keys have topic ids as well, all of
    them zero.

    Source: TopicPartition.hashCode, TopicIdPartition.hashCode.

    """
    listed = list(partitions)
    if len(listed) <= SMALL_MAP_MAX:
        return listed
    seed = 2 * 31 * 31 if have_topic_ids else 31 * 31
    of_topic = {topic: seed + java_string_hash(topic) for topic in {key.topic for key in listed}}
    hashed = [(_tree_hash(of_topic[key[0]] + 31 * key[1]), key) for key in listed]
    return list(_in_tree(hashed))


def by_topic_in_hash_order(
    partitions: Iterable[TopicPartition],
    in_order: Callable[[Iterable[TopicPartition]], list[TopicPartition]] = partitions_in_hash_order,
) -> dict[str, list[TopicPartition]]:
    """Return distinct partitions by topic, in the iteration order of Scala's `groupBy` on a map.

    `in_order` gives the order of the map's partitions and of those of a topic; topics are in a
    tree, the immutable hash map.

    Source: scala.collection.IterableOps.groupBy.

    """
    topics: dict[str, list[TopicPartition]] = {}
    for key in in_order(partitions):
        topics.setdefault(key.topic, []).append(key)
    return {name: in_order(topics[name]) for name in in_immutable_hash_set_order(topics)}


def _in_tree(hashed: Sequence[tuple[int, _Key]]) -> Iterator[_Key]:
    """Yield keys in the iteration order of Scala's immutable hash map.

    Each key comes with its hash, shifted so that the lowest bits are those for the current node.
    """
    places: list[list[tuple[int, _Key]]] = [[] for _ in range(1 << _PLACE_BITS)]
    for improved, key in hashed:
        places[improved & _PLACES_MASK].append((improved >> _PLACE_BITS, key))
    yield from (entries[0][1] for entries in places if len(entries) == 1)
    for entries in places:
        if len(entries) < 2:
            continue
        if all(bits == entries[0][0] for bits, _ in entries):
            # Keys with equal hashes share a node.
            yield from (key for _, key in entries)
        else:
            yield from _in_tree(entries)


def _tree_hash(number: int) -> int:
    """Return a hash as improved by an immutable map. Source: scala.collection.Hashing.improve."""
    number = number + ~(number << 9) & _UINT_MASK
    number ^= number >> 14
    number = number + (number << 4) & _UINT_MASK
    return number ^ number >> 10


def in_java_hash_order(names: Iterable[str]) -> list[str]:
    """Return distinct names in the iteration order of a Java `HashMap`, given in insertion order.

    Differs: chains of eight and more, which Java turns into trees, are in insertion order too.

    """
    listed = list(names)
    mask = java_chains(len(listed)) - 1
    return sorted(listed, key=lambda name: _improved_hash(name) & mask)


def in_concurrent_hash_order(names: Iterable[str], held_count: int = 0) -> list[str]:
    """Return distinct names in the iteration order of a Java `ConcurrentHashMap`.

    They are given in insertion order. `held_count` is the most names that the map has ever had;
    removed names are assumed not to have changed the order of the others as the map grew.

    Differs: chains of eight and more, which Java turns into trees, are in insertion order too.

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
    """Return the chains of a ConcurrentHashMap after it has doubled their number.

    Source: ConcurrentHashMap.transfer.
    """
    size = len(table)
    halves = [_split(chain, size) for chain in table]
    return [low for low, _ in halves] + [high for _, high in halves]


def _split(chain: list[str], bit: int) -> tuple[list[str], list[str]]:
    """Return the two chains into which Java splits a chain when the table is doubled.

    The first has the keys whose hash lacks the new bit `bit`, the second those that have it.
    """
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
    """Return distinct int64 numbers in the iteration order of a Java `HashMap` of `Long` keys."""
    listed = list(numbers)
    mask = java_chains(len(listed)) - 1
    return sorted(listed, key=lambda number: spread_hash(number ^ number >> 32) & mask)


def partitions_in_java_hash_order(
    partitions: Iterable[TopicPartition], *, are_computed: bool = False
) -> list[TopicPartition]:
    """Return distinct partitions in the iteration order of a Java `HashMap`.

    They are given in insertion order. With `are_computed` they were added by `compute`, which
    inserts a key at the front of its chain, instead of `put`.

    Source: TopicPartition.hashCode, HashMap.compute.

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
    """Return distinct int64 numbers in the iteration order of a Scala `LongMap`.

    `capacity` is the number of keys that the map was created for.

    Source: scala.collection.mutable.LongMap, whose slots are hashed as MurmurHash3 ends.
    """
    listed = list(numbers)
    # These two have no slot: each is its own negative.
    apart = [number for number in (0, _LONG_MIN) if number in listed]
    hashed = ((_finished(n ^ n >> 32), n) for n in listed if n not in apart)
    return apart + _in_slots(hashed, capacity)


def in_immutable_set_order(names: Collection[str]) -> Iterator[str]:
    """Yield distinct names in the iteration order of Scala's immutable set.

    Up to four names keep the given order; more are in an immutable hash set.
    """
    return iter(names) if len(names) <= SMALL_MAP_MAX else in_immutable_hash_set_order(names)


def in_immutable_hash_set_order(names: Iterable[str]) -> Iterator[str]:
    """Yield distinct names in the iteration order of Scala's immutable hash set.

    Only sets of more than `SMALL_MAP_MAX` names are of this kind; smaller ones keep the given
    order.

    Source: scala.collection.immutable.HashSet.

    """
    return _in_tree([(immutable_set_hash(name), name) for name in names])


@lru_cache(maxsize=_KEPT_SET_HASHES)
def immutable_set_hash(name: str) -> int:
    """Return the 32-bit hash that orders the tree of an immutable set; cached."""
    return _tree_hash(java_string_hash(name))


def in_any_ref_map_order(names: Iterable[str], capacity: int) -> list[str]:
    """Return distinct names in the iteration order of a Scala `AnyRefMap`.

    `capacity` is the number of keys that the map was created for.

    Source: scala.collection.mutable.AnyRefMap, whose slots are hashed as MurmurHash3 begins to end.
    """
    return _in_slots(((_ref_hash(name), name) for name in names), capacity)


def _ref_hash(name: str) -> int:
    # A hash of 0, that of a free slot, is replaced.
    """Return the hash by which an AnyRefMap finds the slot of a name, never 0."""
    return _finished(java_string_hash(name)) & 0x7FFFFFFF or 0x41081989


def _finished(number: int) -> int:
    """Return 32 bits of a number, mixed by the first half of MurmurHash3's finalizer."""
    mixed = spread_hash(number & _UINT_MASK) * 0x85EBCA6B & _UINT_MASK
    return mixed ^ mixed >> 13


def _in_slots(hashed: Iterable[tuple[int, _Key]], capacity: int) -> list[_Key]:
    """Return keys in the order of their slots in an open-addressed table for `capacity` keys.

    The table is doubled, and filled again in slot order, once more than half is used.
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
    """Put a key into the first free slot of Scala's probing sequence."""
    slot, tries = key[0] & mask, 0
    while slot in slots:
        tries += 1
        slot = slot + 2 * (tries + 1) * tries - 3 & mask
    slots[slot] = key


def java_chains(size: int) -> int:
    """Return the table size of a Java `HashMap` that has had at most `size` keys at a time."""
    chains = _CHAINS_MIN
    while size > chains * 3 // 4:
        chains *= 2
    return chains


def spread_hash(number: int) -> int:
    """Return a hash with its upper half mixed into the lower one, as Scala's and Java's maps do."""
    number &= _UINT_MASK
    return number ^ (number >> 16)


@lru_cache(maxsize=_KEPT_HASHES)
def _improved_hash(name: str) -> int:
    """Return the hash by which Scala's and Java's maps find the chain of a name."""
    return spread_hash(java_string_hash(name))
