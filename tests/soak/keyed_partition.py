"""What one partition of a keyed load has to hold: every record that was sent, by its number.

Numbers rise in the order of the log; a record's bytes follow from its number. So the last value of
a key is that of its highest number, and an offset is known from the number where nothing comes
twice: the number, and one for each marker of a transaction before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tests.soak.writers import Place

_WORDS = b"the quick brown fox jumps over the lazy dog "
#: What topics have where it is not said otherwise: consumers are quicker, and brokers that were
#: away are in sync again. A replica that is not keeps values whose tombstones it never saw.
DELETE_RETENTION_MS = 60_000


class Kept(NamedTuple):
    """How a topic keeps its records; times in ms, None for ever.

    `knows_offsets`: every offset is known. It is not where a producer without ids sends twice.
    """

    is_compacted: bool = True
    retention_ms: int | None = None
    delete_retention_ms: int | None = DELETE_RETENTION_MS
    knows_offsets: bool = True


class Keyed(NamedTuple):
    """A record that was sent."""

    key: bytes
    is_tombstone: bool
    time_ms: int


class Read(NamedTuple):
    """A record that was read."""

    offset: int
    key: bytes
    number: int
    value: bytes | None


def value_of(number: int) -> bytes:
    """Return the value of a record that is no tombstone."""
    return b"%d " % number + _WORDS * (number % 5)


class KeyedPartition:
    """All records of one partition, those of transactions that were aborted among them."""

    def __init__(self, place: Place, kept: Kept) -> None:
        self.place = place
        self.kept = kept
        self.records: list[Keyed] = []
        self.aborted: set[int] = set()
        #: For each marker the number of the record that came next.
        self._markers: list[int] = []
        self._last: dict[bytes, int] = {}
        self._folded = 0

    def add(self, key: bytes, time_ms: int, *, is_tombstone: bool = False) -> int:
        """Take the next record, and return its number."""
        self.records.append(Keyed(key, is_tombstone, time_ms))
        return len(self.records) - 1

    def add_marker(self) -> None:
        """Take the end of a transaction, which has an offset."""
        self._markers.append(len(self.records))

    def forget_last(self) -> None:
        """Take back the last record, which was not sent after all."""
        self.records.pop()

    def offset_of(self, number: int) -> int:
        """Return where a record is."""
        return number + bisect_right(self._markers, number)

    @property
    def end_offset(self) -> int:
        """Return where the next record or marker comes."""
        return len(self.records) + len(self._markers)

    def end_to_read(self, high_watermark: int) -> int:
        """Return the offset to which a consumer has to read to see every record, exclusive.

        Records that a producer without ids sent twice have offsets of their own.
        """
        if self.kept.knows_offsets:
            return self.end_offset
        return max(self.end_offset, high_watermark)

    def fold(self, end: int) -> dict[bytes, int]:
        """Return the last committed number of each key below number `end`, which never falls."""
        for number in range(self._folded, end):
            if number not in self.aborted:
                self._last[self.records[number].key] = number
        self._folded = max(self._folded, end)
        return self._last

    def problems(self, read: Iterable[Read], start: int, end: int, now_ms: int) -> list[str]:
        """Return what is wrong with a partition that was read from `start`, all committed to `end`.

        `start` is the log start offset when the reading was over; `end` is a number, exclusive.
        """
        found: list[str] = []
        last: dict[bytes, Read] = {}
        before, count = Read(-1, b"", -1, None), 0
        for each in read:
            if each.offset >= start:
                found += self._wrong(before, each)
                last[each.key] = before = each
                count += 1
        wanted = self.fold(end)
        for key, number in wanted.items():
            found += self._lost(last.get(key), key, number, start, now_ms)
        found += [f"{self.place}: nobody committed {key!r}" for key in last if key not in wanted]
        if not self.kept.is_compacted and count != end - min(start, end):
            found.append(f"{self.place} has {count} records from {start} to {end}")
        return found + self._deleted_early(start, now_ms)

    def _wrong(self, before: Read, read: Read) -> list[str]:
        """Tell what is wrong with one record that was read behind another one."""
        number = read.number
        sent = self.records[number]
        wanted = None if sent.is_tombstone else value_of(number)
        if (read.key, read.value) != (sent.key, wanted):
            return [f"{self.place} at {read.offset}: {read.value!r}, sent {sent}"]
        if number in self.aborted:
            return [f"{self.place} at {read.offset}: {number} was aborted"]
        if read.offset <= before.offset:
            return [f"{self.place} at {read.offset} behind {before.offset}"]
        if self.kept.knows_offsets and read.offset != self.offset_of(number):
            return [f"{self.place} at {read.offset}: {number}, was at {self.offset_of(number)}"]
        return []

    def _lost(
        self, read: Read | None, key: bytes, number: int, start: int, now_ms: int
    ) -> list[str]:
        """Tell what is wrong with the last record of a key, None if there is none."""
        sent = self.records[number]
        if read is not None and read.number == number:
            return []
        if read is None and self.kept.knows_offsets and self.offset_of(number) < start:
            return []
        if read is None and self._may_be_gone(number, now_ms):
            return []
        return [f"{self.place}: {key!r} is {read}, not {number}, {sent}, from {start} on"]

    def _may_be_gone(self, number: int, now_ms: int) -> bool:
        """Return whether a record is a tombstone that consumers have had their time to see."""
        sent, retention_ms = self.records[number], self.kept.delete_retention_ms
        return (
            sent.is_tombstone and retention_ms is not None and sent.time_ms + retention_ms <= now_ms
        )

    def _deleted_early(self, start: int, now_ms: int) -> list[str]:
        """Return which records below the log start were not old enough to go."""
        if start == 0:
            return []
        if self.kept.retention_ms is None:
            return [f"{self.place} starts at {start}"]
        numbers: Iterable[int] = range(start)
        if self.kept.is_compacted:
            # What a later record outdates may go at any time, and then its segment is as old as
            # what is left of it; so may tombstones.
            numbers = (
                number
                for number in self._last.values()
                if self.offset_of(number) < start and not self._may_be_gone(number, now_ms)
            )
        youngest = max((self.records[number].time_ms for number in numbers), default=0)
        if youngest + self.kept.retention_ms > now_ms:
            return [f"{self.place} starts at {start}, {now_ms - youngest} ms later"]
        return []
