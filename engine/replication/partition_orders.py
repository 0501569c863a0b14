"""The order in which Kafka's metadata cache gives out the partitions of a topic.

It keeps them in a Scala `LongMap`. With the topic it is made for 16 partitions, which come in the
order of the controller's hash map of all partitions in that update; that map never shrinks. Each
later update about a partition of any topic copies every `LongMap` into one of just its size, where
partitions that share a slot may change places.

1 note what an update adds        2 put it into the map as the topic is next read
3 copy the map as often as there were updates since, or until it repeats itself

Source: PART-12; ZkMetadataCache.updateMetadata, AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from engine.hash_order import numbers_in_long_map_order, partition_indexes_in_hash_order

_NEW_MAP_CAPACITY = 16
#: Orders of maps that are kept: many topics have the same few partitions.
_KEPT_ORDERS = 256


class _Addition(NamedTuple):
    """Partitions that an update added to a topic."""

    indexes: tuple[int, ...]
    #: How many partitions of all topics this update, or one before, was about.
    largest_update: int
    #: How many updates there had been with it.
    update_count: int


class _Order(NamedTuple):
    """The partitions of a topic in their map, after so many updates."""

    indexes: tuple[int, ...]
    update_count: int


class PartitionOrders:
    """Orders of the partitions of topics, worked out as a topic is read."""

    def __init__(self) -> None:
        """Begin without topics."""
        #: Number of updates, and the partitions of the largest one: both decide how Kafka's maps
        #: have grown.
        self._update_count = 0
        self._largest_update = 0
        self._orders: dict[str, _Order] = {}
        #: Partitions of each topic that are not ordered yet.
        self._additions: dict[str, list[_Addition]] = {}

    def update(self, added: Mapping[str, Sequence[int]], update_size: int) -> None:
        """Note one metadata update: its size, and each topic's new partitions (1).

        Both decide the order of Kafka's hash map later.
        """
        if not update_size:
            return
        self._update_count += 1
        self._largest_update = max(self._largest_update, update_size)
        for topic, indexes in added.items():
            addition = _Addition(tuple(indexes), self._largest_update, self._update_count)
            self._additions.setdefault(topic, []).append(addition)

    def forget(self, topic: str) -> None:
        """Drop a topic that is deleted."""
        self._orders.pop(topic, None)
        self._additions.pop(topic, None)

    def of(self, topic: str, partitions: Iterable[int]) -> list[int]:
        """Return a topic's partitions in the order of Kafka's map.

        Partitions never noted come last.
        """
        waiting = set(partitions)
        if len(waiting) <= 2 and waiting <= {0, 1}:
            # 0 has no slot, and comes first.
            return sorted(waiting)
        order = self._orders.get(topic, _Order((), self._update_count))
        for addition in self._additions.pop(topic, ()):
            order = _extended(topic, order, addition)
        indexes = _copied(order.indexes, self._update_count - order.update_count)
        self._orders[topic] = _Order(indexes, self._update_count)
        known = [index for index in indexes if index in waiting]
        return known + sorted(waiting.difference(known))


def _extended(topic: str, order: _Order, addition: _Addition) -> _Order:
    """Return a topic's order of partitions after an update added some (2)."""
    before = order.indexes
    # The update itself copies the map before it adds to it.
    copies = addition.update_count - order.update_count - 1
    known = _copied(before, copies) if before else ()
    new = partition_indexes_in_hash_order(topic, addition.indexes, addition.largest_update)
    capacity = len(known) if known else _NEW_MAP_CAPACITY
    listed = tuple(dict.fromkeys((*known, *new)))
    return _Order(_in_map(listed, capacity), addition.update_count)


def _copied(indexes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the order after so many copies (3)."""
    seen = {indexes: 0}
    for done in range(1, count + 1):
        indexes = _in_map(indexes, len(indexes))
        first = seen.setdefault(indexes, done)
        if first < done:
            orders = list(seen)
            return orders[first + (count - first) % (done - first)]
    return indexes


@lru_cache(maxsize=_KEPT_ORDERS)
def _in_map(indexes: tuple[int, ...], capacity: int) -> tuple[int, ...]:
    """Return partition indexes in the order of Scala's LongMap of a capacity."""
    return tuple(numbers_in_long_map_order(indexes, capacity))
