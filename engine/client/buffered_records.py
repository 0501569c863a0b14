"""Records that a consumer has fetched and not processed yet.

```
fetched ── append ──> waiting ── take ──> returned ── the next take ──> processed
                         ^                    │
                         └──── put_back ──────┘
```

Records wait in the order of the fetches, in runs of one partition each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import NamedTuple

from engine.model import TopicPartition
from engine.records.record import Header, TimestampType


class ConsumerRecord(NamedTuple):
    """A record with its partition and offset; `leader_epoch` is −1 in formats without epochs."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Return the record's topic and partition as one key."""
        return TopicPartition(self.topic, self.partition)


class BufferedRecords:
    """Fetched records for the consumer's next `poll`, and those that the last one returned."""

    def __init__(self) -> None:
        #: The buffered records in order, in runs of one partition; no run is empty.
        self._runs: deque[deque[ConsumerRecord]] = deque()
        self._returned: list[ConsumerRecord] = []

    def append(self, records: Collection[ConsumerRecord]) -> None:
        """Add records of one partition after the buffered ones."""
        if records:
            self._runs.append(deque(records))

    def has_other_than(self, paused: Collection[TopicPartition]) -> bool:
        """True if the buffer has a record of a partition that is not in `paused`.

        The consumer then does not fetch: its poll returns these records first.
        """
        return any(partition not in paused for partition, _ in self._firsts())

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the offset of the first buffered record, by partition."""
        return dict(reversed(list(self._firsts())))

    def take(self, count_max: int, paused: Collection[TopicPartition]) -> list[ConsumerRecord]:
        """Remove and return up to `count_max` buffered records, none of `paused` partitions.

        The records of the previous call then count as processed: they can no longer be put back.
        """
        found: list[ConsumerRecord] = []
        kept: deque[deque[ConsumerRecord]] = deque()
        while self._runs and len(found) < count_max:
            run = self._runs.popleft()
            if run[0].topic_partition in paused:
                kept.append(run)
                continue
            found += [run.popleft() for _ in range(min(count_max - len(found), len(run)))]
            if run:
                self._runs.appendleft(run)
        self._runs = kept + self._runs
        self._returned = found
        # A copy: what the caller does with its list changes nothing here.
        return found.copy()

    def mark_processed(self) -> None:
        """Count all returned records as processed: they can no longer be put back."""
        self._returned = []

    @property
    def returned(self) -> list[ConsumerRecord]:
        """Return the records of the last `take`, without those put back or dropped since."""
        return self._returned

    def put_back(self, records: Collection[ConsumerRecord]) -> list[ConsumerRecord]:
        """Put returned records back into the buffer; return those that were put back.

        Only the last records of the last `take` that are all among `records` are put back: the
        order of each partition remains. The next poll returns them again.
        """
        places = {_partition_and_offset(record) for record in records}
        first = len(self._returned)
        while first and _partition_and_offset(self._returned[first - 1]) in places:
            first -= 1
        self._returned, again = self._returned[:first], self._returned[first:]
        for record in reversed(again):
            if not self._runs or self._runs[0][0].topic_partition != record.topic_partition:
                self._runs.appendleft(deque())
            self._runs[0].appendleft(record)
        return again

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Remove the buffered and the returned records of partitions revoked or sought."""
        self._runs = deque(run for run in self._runs if run[0].topic_partition not in partitions)
        self._returned = [r for r in self._returned if r.topic_partition not in partitions]

    def _firsts(self) -> Iterator[tuple[TopicPartition, int]]:
        """Return partition and offset of the first record of each run, in order.

        A run holds records of one partition; a partition may have several.
        """
        return ((run[0].topic_partition, run[0].offset) for run in self._runs)


def _partition_and_offset(record: ConsumerRecord) -> tuple[TopicPartition, int]:
    """Return the partition and offset of a record."""
    return record.topic_partition, record.offset
