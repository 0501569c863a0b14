"""Appends to very many partitions, a few in each turn of the loop.

```
 append to some ─ turn ─ append to some … ─┬─ nothing to wait for ─────────────────────> results
                                           └─ acks=-1: one DelayedProduce for all, with the
                                              deadline of the request's first turn ────> promise
```

Source: PUR-4, PUR-10; Kafka appends to the partitions of a request one after the other, too, while
leaders change and followers fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.host.turns import Share
from engine.limits import ROWS_PER_SHARE
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.replication.delayed_produce import DelayedProduce, ProduceResult, ProduceResults
from engine.replication.effects import Effect
from engine.replication.errors import InvalidRequiredAcks, NotLeaderOrFollower
from engine.replication.partition import ACKS_ALL, ACKS_LEADER, Partition

VALID_ACKS = (ACKS_ALL, 0, ACKS_LEADER)


class Appended(NamedTuple):
    """What has become of one request's partitions so far, and the offsets that it waits for."""

    results: ProduceResults
    required: dict[TopicPartition, int]
    required_acks: int
    must_spare_internal: bool


class LargeAppendSide(NamedTuple):
    """What a large append needs of the replica manager."""

    clock: Clock
    append_some: Callable[
        [Iterable[tuple[TopicPartition, memoryview]], Appended, AppendOrigin], list[Effect]
    ]
    find: Callable[[TopicPartition], Partition]
    perform: Callable[[Iterable[Effect]], None]
    #: Lets a produce wait.
    watch: Callable[[DelayedProduce, Mapping[TopicPartition, int]], None]


class LargeAppends:
    """The appends to very many partitions of one broker."""

    def __init__(self, side: LargeAppendSide) -> None:
        self._side = side
        self._is_stopped = False

    def stop(self) -> None:
        """Touch no log any more."""
        self._is_stopped = True

    async def append(
        self,
        entries: Mapping[TopicPartition, memoryview],
        required_acks: int,
        timeout_ms: int,
        share: Share,
        *,
        is_internal_allowed: bool = False,
    ) -> ProduceResults | Promise[ProduceResults]:
        """Append what a client sent, as `ReplicaManager.append_records` does.

        Each partition is found at its own turn; what is left after `stop` is refused with
        NotLeaderOrFollower. The wait for followers is not part of the call.
        """
        if required_acks not in VALID_ACKS:
            return dict.fromkeys(entries, ProduceResult(InvalidRequiredAcks(required_acks)))
        side = self._side
        deadline_ms = side.clock.monotonic_ms() + timeout_ms
        appended = Appended({}, {}, required_acks, not is_internal_allowed)
        left = iter(entries.items())
        while some := tuple(islice(left, ROWS_PER_SHARE)):
            if share.is_over():
                await share.next()
            if self._is_stopped:
                _refuse(some, appended.results)
            else:
                side.perform(side.append_some(some, appended, AppendOrigin.CLIENT))
        if not appended.required:
            return appended.results
        await share.next()
        produce = DelayedProduce(deadline_ms, appended.results, appended.required, side.find)
        promise = produce.promise
        # Between two turns followers may have fetched, and leaders have changed.
        if self._is_stopped or produce.can_complete():
            produce.force_complete()
            produce.keep()
        else:
            side.watch(produce, appended.required)
        return promise


def _refuse(entries: Iterable[tuple[TopicPartition, memoryview]], results: ProduceResults) -> None:
    for topic_partition, _ in entries:
        refused = NotLeaderOrFollower(topic_partition, "the broker stops")
        results[topic_partition] = ProduceResult(refused)
