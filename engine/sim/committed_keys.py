"""Rule L7: which committed records of a compacted partition a cleaning may remove.

```
committed        a=1  b=1  a=2  a=   b=3  c=1          a= is a tombstone
may remain                 a=2  a=   b=3  c=1
and later, if a=2 is removed too (delete.retention.ms after a=)
                                     b=3  c=1
```

A batch of a log has all or some of the committed records, at their offsets and in their order. The
last record of each key is kept; a tombstone may be removed after its time, together with every
earlier record of its key.

A replica that joins the ISR after a tombstone was cleaned away may never have received it, and
keeps the records that the tombstone deletes: Kafka has this limit too (`delete.retention.ms`). The
same is true of a replica that lost the tombstone.

Source: L7; CMP-1, CMP-4. Differs: if clocks jump, tombstones may be removed earlier, by the largest
difference of two brokers' clocks since they were committed (`clocks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from engine.records.batch import BatchView
from engine.sim.records import BatchId, KeyedRecord, id_of, keyed_records


class CommittedKeys:
    """The committed records of a compacted partition, by batch and by key."""

    def __init__(self, tombstones_stay_ms: int, spread_ms: Callable[[int], int]) -> None:
        """Create it without records.

        Tombstones must be kept for `tombstones_stay_ms` after their commit.

        `spread_ms` returns how far clocks were apart since a time: tombstones may go that much
        earlier.
        """
        self._tombstones_stay_ms = tombstones_stay_ms
        self._spread_ms = spread_ms
        #: Records of committed batches, by base offset.
        self._records: dict[int, Sequence[KeyedRecord]] = {}
        #: The last record of each key, with the time of its commit.
        self._last: dict[bytes, tuple[KeyedRecord, int]] = {}
        #: Time of each batch's commit, by base offset.
        self._committed_ms: dict[int, int] = {}
        #: Keys of lost records, with the offset from which records were lost: older records of
        #: these keys may have been cleaned away because of the lost ones.
        self._uncertain: dict[bytes, int] = {}
        #: Time when a replica last joined the ISR; and the times when replicas lost writes, with
        #: the offset from which.
        self._joined_ms = -1
        self._lost: list[tuple[int, int]] = []
        #: Records that a cleaning has left of a batch, by the batch's identity: many replicas have
        #: the same.
        self._cleaned: dict[BatchId, Sequence[KeyedRecord]] = {}

    def commit(self, batch: BatchView, now_ms: int) -> None:
        """Add the next committed batch of the partition; `now_ms` is when it was committed."""
        records = self._records[batch.base_offset] = tuple(keyed_records(batch))
        self._committed_ms[batch.base_offset] = now_ms
        for record in records:
            self._last[record.key] = record, now_ms

    def record_joined(self, now_ms: int) -> None:
        """Record that a replica joined the ISR: it may lack tombstones that were cleaned away."""
        self._joined_ms = now_ms

    def record_lost_writes(self, now_ms: int, kept_end: int) -> None:
        """Record that a replica lost its writes from `kept_end` on, perhaps tombstones."""
        self._lost.append((now_ms, kept_end))

    def cut(self, first: int) -> None:
        """Remove all committed records from offset `first` on, after they were lost.

        A log may then have no record of their keys at all: an earlier cleaning may have removed an
        older record because of a lost one.
        """
        for base in [base for base in self._records if base >= first]:
            self._uncertain.update((record.key, first) for record in self._records.pop(base))
        self._last.clear()
        for base, records in self._records.items():
            for record in records:
                if record.offset >= self._uncertain.get(record.key, 0):
                    self._last[record.key] = record, self._committed_ms[base]

    def required_offsets(self, now_ms: int) -> list[int]:
        """Return the offsets of the keys' last records that must still exist at `now_ms`."""
        return [
            record.offset
            for record, committed_ms in self._last.values()
            if not record.is_tombstone or now_ms < committed_ms + self._stay_ms(committed_ms)
        ]

    def records(self, start: int = 0) -> Iterator[KeyedRecord]:
        """Yield all records that were ever committed, from offset `start` on, in log order."""
        for records in self._records.values():
            yield from (record for record in records if record.offset >= start)

    def left_of(self, batch: BatchView, committed: BatchId | None) -> Sequence[KeyedRecord] | None:
        """Return the records of a batch in a log; None if no cleaning could produce this batch.

        `committed` is the batch that was committed at the same base offset, None if there was none.
        A cleaning may only remove records from it.
        """
        found = id_of(batch)
        if committed is None or found != committed._replace(crc=found.crc):
            return None
        records = self._records[batch.base_offset]
        if found == committed:
            return records
        left = self._cleaned.get(found)
        if left is None:
            left = tuple(keyed_records(batch))
            rest = iter(records)
            if not all(record in rest for record in left):
                return None
            self._cleaned[found] = left
        return left

    def missing_last_record(
        self, left: Iterable[Sequence[KeyedRecord]], start: int, end: int, now_ms: int
    ) -> KeyedRecord | None:
        """Return a key's last record in [start, end) that a log wrongly lacks.

        None if it lacks none.

        A tombstone may be missing after its time. `left` has the log's records by batch, in order
        of offsets, from [start, end) and possibly earlier ones.
        """
        found: dict[bytes, int] = {}
        for records in left:
            for record in records:
                found[record.key] = record.offset
        for key, (record, committed_ms) in self._last.items():
            if not start <= record.offset < end or found.get(key) == record.offset:
                continue
            if not record.is_tombstone or not self._may_lack(
                record.offset, committed_ms, now_ms, has_earlier=key in found
            ):
                return record
        return None

    def _may_lack(self, offset: int, committed_ms: int, now_ms: int, *, has_earlier: bool) -> bool:
        """Return True if a log may lack a tombstone of this offset, because cleanings removed it.

        With `has_earlier` the log still has an earlier record of the key: that is allowed only if a
        replica joined the ISR or lost writes since.
        """
        due_ms = committed_ms + self._stay_ms(committed_ms)
        if due_ms > now_ms or not has_earlier:
            return due_ms <= now_ms
        return due_ms <= self._joined_ms or any(
            committed_ms <= lost_ms and offset >= kept_end for lost_ms, kept_end in self._lost
        )

    def _stay_ms(self, committed_ms: int) -> int:
        """Return how long a tombstone is kept at least; jumps of clocks shorten it."""
        return max(0, self._tombstones_stay_ms - self._spread_ms(committed_ms))
