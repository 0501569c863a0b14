"""The loads of partitions that a coordinator has just become the leader of, of groups and of ids.

```
 begun ──> read from its start ──> whole: the owner serves what it says, and ends the load
                  ^      │ cannot be read
                  └──────┘ after a pause
```

A load goes on until its partition is lost, or another is begun for it.

Source: loadingPartitions of GroupMetadataManager and of TransactionStateManager of 3.9.1.
Differs: a partition that cannot be read is read again, and not served meanwhile; Kafka serves it as
far as it was read.
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
    """One load of a partition in a leader epoch, which goes on until another takes its place.

    A topic that was deleted and made again begins with the same epochs.
    """

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class CoordinatorLoads:
    """The loads of one topic's partitions that go on now."""

    def __init__(self, topic: str, turns: LoopTurns, log: logging.Logger) -> None:
        """`log` gets the errors of partitions that cannot be read."""
        self._topic = topic
        self._turns = turns
        self._log = log
        self._loads: dict[int, CoordinatorLoad] = {}

    def __contains__(self, partition: object) -> bool:
        """Return whether a partition is loaded now."""
        return partition in self._loads

    def __bool__(self) -> bool:
        """Return whether some partition is loaded now."""
        return bool(self._loads)

    def get(self, partition: int) -> CoordinatorLoad | None:
        """Return the load of a partition, None if it is not loaded now."""
        return self._loads.get(partition)

    def begin(self, partition: int, leader_epoch: int) -> CoordinatorLoad:
        """Begin a load, in place of one that goes on."""
        load = self._loads[partition] = CoordinatorLoad(partition, leader_epoch)
        return load

    def end(self, partition: int) -> None:
        """End the load of a partition, if there is one: it is whole, or the partition lost."""
        self._loads.pop(partition, None)

    def end_all(self) -> None:
        """End all loads: the broker stops."""
        self._loads.clear()

    def is_current(self, load: CoordinatorLoad) -> bool:
        """Return whether a load goes on."""
        return self._loads.get(load.partition) is load

    def while_current(self, load: CoordinatorLoad, items: Iterable[T]) -> Iterator[T]:
        """Yield items until the load has ended."""
        for item in items:
            if not self.is_current(load):
                return
            yield item

    async def read(
        self,
        load: CoordinatorLoad,
        begin: Callable[[], T],
        records_of: Callable[[int], Iterable[R]],
        apply: Callable[[T, R], object],
    ) -> T | None:
        """Read a partition, and retry until it succeeds; None if the load ends before.

        Each attempt fills the object that `begin` returns: `apply` is called with one item of
        `records_of` after the other, in turns of the loop.
        """
        while self.is_current(load):
            loaded = begin()
            try:
                records = self.while_current(load, records_of(load.partition))
                await self._turns.each(records, partial(apply, loaded))
            except EngineError as error:
                # Served as it is, it would send consumers to their reset positions.
                self._log.error(
                    "partition %d of %s is read again: %s", load.partition, self._topic, error
                )
                await self._turns.pause(COORDINATOR_LOAD_RETRY_MS)
            else:
                return loaded if self.is_current(load) else None
        return None
