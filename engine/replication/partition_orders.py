"""The order in which Kafka's metadata cache iterates over the partitions of a topic.

Kafka keeps them in a Scala `LongMap`. A new topic's map is created with a capacity of 16, and the
partitions are inserted in the order of the controller's hash map of all partitions in the update;
that hash map never shrinks. Each later update about any topic copies every `LongMap` into one of
exactly its size, where partitions that share a slot may change their order.

1 record what an update adds      2 insert it into the map when the topic is read next
3 copy the map once for each update since then, or until an order repeats

Source: PART-12; ZkMetadataCache.updateMetadata, AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from engine.hash_order import numbers_in_long_map_order, partition_indexes_in_hash_order

_NEW_MAP_CAPACITY = 16
#: Number of cached orders: many topics have the same few partitions.
_KEPT_ORDERS = 256


class _Addition(NamedTuple):
    """The partitions that an update added to a topic."""

    indexes: tuple[int, ...]
    #: Most partitions in one update, up to and including this one.
    largest_update: int
    #: Number of updates up to and including this one.
    update_count: int


class _Order(NamedTuple):
    """The partitions of a topic in the order of their map, after `update_count` updates."""

    indexes: tuple[int, ...]
    update_count: int


class PartitionOrders:
    """The orders of the partitions of topics, computed when a topic is read."""

    def __init__(self) -> None:
        """Create without topics, as Kafka's metadata cache is at the start of a broker."""
        #: Number of updates, and of partitions in the largest one: both determine Kafka's maps.
        self._update_count = 0
        self._largest_update = 0
        self._orders: dict[str, _Order] = {}
        #: Additions to each topic that are not in its order yet.
        self._additions: dict[str, list[_Addition]] = {}

    def record_update(self, added: Mapping[str, Sequence[int]], update_size: int) -> None:
        """Record the partitions of one UpdateMetadata request.

        The number of its partitions, and those that it adds by topic, determine the order
        of Kafka's hash maps.
        """
        if not update_size:
            return
        self._update_count += 1
        self._largest_update = max(self._largest_update, update_size)
        for topic, indexes in added.items():
            addition = _Addition(tuple(indexes), self._largest_update, self._update_count)
            self._additions.setdefault(topic, []).append(addition)

    def forget(self, topic: str) -> None:
        """Remove the orders of a deleted topic."""
        self._orders.pop(topic, None)
        self._additions.pop(topic, None)

    def order_partitions(self, topic: str, partitions: Iterable[int]) -> list[int]:
        """Return a topic's partitions in the order in which Kafka's map iterates them.

        Partitions that no update has added come last.
        """
        waiting = set(partitions)
        if len(waiting) <= 2 and waiting <= {0, 1}:
            # LongMap keeps the key 0 outside of its slots, and it comes first.
            return sorted(waiting)
        order = self._orders.get(topic, _Order((), self._update_count))
        for addition in self._additions.pop(topic, ()):
            order = _extend_order(topic, order, addition)
        indexes = _order_after_copies(order.indexes, self._update_count - order.update_count)
        self._orders[topic] = _Order(indexes, self._update_count)
        known = [index for index in indexes if index in waiting]
        return known + sorted(waiting.difference(known))


def _extend_order(topic: str, order: _Order, addition: _Addition) -> _Order:
    """Return a topic's order after an update has added partitions to it."""
    before = order.indexes
    # The update copies the map before it inserts.
    copies = addition.update_count - order.update_count - 1
    known = _order_after_copies(before, copies) if before else ()
    new = partition_indexes_in_hash_order(topic, addition.indexes, addition.largest_update)
    capacity = len(known) if known else _NEW_MAP_CAPACITY
    listed = tuple(dict.fromkeys((*known, *new)))
    return _Order(_in_map(listed, capacity), addition.update_count)


def _order_after_copies(indexes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the order after `count` copies of Kafka's map: each update copies it."""
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
    """Return partition indexes in the order of a Scala LongMap of this capacity."""
    return tuple(numbers_in_long_map_order(indexes, capacity))
