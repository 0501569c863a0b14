"""Loads of coordinator partitions, of groups or transactional ids, after their leader has changed.

```
 begun ──> read from its start ──> complete: the owner serves its content, and ends the load
                  ^      │ read error
                  └──────┘ after a pause
```

A load continues until its partition is lost, or another load of it is begun.

Source: loadingPartitions of GroupMetadataManager and of TransactionStateManager of 3.9.1.
Differs: a partition with a read error is read again, and not served meanwhile; Kafka serves the
part that it has read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from engine.errors import EngineError
from engine.host.turns import LoopTurns
from engine.limits import COORDINATOR_LOAD_RETRY_MS

T = TypeVar("T")
R = TypeVar("R")


class CoordinatorLoad:
    """One load of a partition in a leader epoch.

    Loads are compared by identity: a topic that was deleted and created again has the same epochs.
    """

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class CoordinatorLoads:
    """The loads in progress of one topic's partitions."""

    def __init__(self, topic: str, turns: LoopTurns, log: logging.Logger) -> None:
        """Create it without loads; `log` receives the read errors of partitions."""
        self._topic = topic
        self._turns = turns
        self._log = log
        self._loads: dict[int, CoordinatorLoad] = {}

    def __contains__(self, partition: object) -> bool:
        """Return True if a partition of the coordinator's topic is being loaded."""
        return partition in self._loads

    def __bool__(self) -> bool:
        """Return True if any partition is being loaded."""
        return bool(self._loads)

    def get(self, partition: int) -> CoordinatorLoad | None:
        """Return the load of a partition; None if it is not being loaded."""
        return self._loads.get(partition)

    def begin(self, partition: int, leader_epoch: int) -> CoordinatorLoad:
        """Return a new load of a partition; it replaces one in progress.

        It is begun when the partition's leader has changed.
        """
        load = self._loads[partition] = CoordinatorLoad(partition, leader_epoch)
        return load

    def end(self, partition: int) -> None:
        """End the load of a partition, if there is one.

        It is called when the load is complete, or when the broker has lost the partition.
        """
        self._loads.pop(partition, None)

    def end_all(self) -> None:
        """End the loads of all partitions, because the broker stops."""
        self._loads.clear()

    def is_current(self, load: CoordinatorLoad) -> bool:
        """Return True if a load has neither ended nor been replaced by a newer one.

        A newer one is begun if the leader of the same partition changes again.
        """
        return self._loads.get(load.partition) is load

    def iter_while_current(self, load: CoordinatorLoad, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, but stop as soon as the load has ended or been replaced.

        Reading takes several turns of the loop, in which the broker may lose the partition.
        """
        for item in items:
            if not self.is_current(load):
                return
            yield item

    async def read_partition(
        self,
        load: CoordinatorLoad,
        begin: Callable[[], T],
        records_of: Callable[[int], Iterable[R]],
        apply: Callable[[T, R], object],
    ) -> T | None:
        """Read a partition from its start, again after each error, and return its content.

        Each attempt fills a new object from `begin`: `apply` is called with the object and each
        item of `records_of(partition)`, in turns of the loop. None means that the load has ended or
        was replaced before.
        """
        while self.is_current(load):
            loaded = begin()
            try:
                records = self.iter_while_current(load, records_of(load.partition))
                await self._turns.each(records, partial(apply, loaded))
            except EngineError as error:
                # A partition with missing offsets would let consumers reset their positions.
                self._log.error(
                    "partition %d of %s is read again: %s", load.partition, self._topic, error
                )
                await self._turns.pause(COORDINATOR_LOAD_RETRY_MS)
            else:
                return loaded if self.is_current(load) else None
        return None
