"""Records of the exactly-once demo: the content of the input, and the check of the output.

Record n of the input has the key n, and is in partition n modulo the number of partitions; so the
next record of a partition is known without a list of all. The output has the same keys in the same
partitions, with transformed values.

| the next record of an output partition | means |
|---|---|
| the next number | as expected |
| a later number | the numbers between are missing so far |
| a number that was missing so far | present, but out of order |
| any other earlier number | doubled |
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

from engine.errors import EngineError
from engine.model import TopicPartition

#: Header of output records with the number of the instance that copied them.
INSTANCE_HEADER: Final = "instance"
_PREFIX: Final = b"copy of "


class UnexpectedRecord(EngineError):
    """A record is not from this demo: another program writes to its topics."""

    hint = "--prefix NAME takes topics of another name"

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(f"{partition} has a record at offset {offset} that is not of this demo")
        self.partition = partition
        self.offset = offset


class OutputFaults(NamedTuple):
    """Counts of missing, doubled and misplaced records in the output."""

    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0

    @property
    def is_clean(self) -> bool:
        """Return True if each record is there once and in order."""
        return not any(self)


def partition_of_number(number: int, partition_count: int) -> int:
    """Return the partition of record `number`."""
    return number % partition_count


def input_value(number: int) -> bytes:
    """Return the value of record `number` in the input."""
    return b"record %d" % number


def transformed(value: bytes) -> bytes:
    """Return the value of the output record that the demo makes of an input record's value."""
    return _PREFIX + value


class PartitionCheck:
    """Compares the output of one partition with its input; takes memory only for missing ranges."""

    def __init__(self, partition: TopicPartition, partition_count: int, record_count: int) -> None:
        self._partition = partition
        #: Difference between the numbers of a partition; the first is the partition's index.
        self._step = partition_count
        self._end = record_count
        #: The next expected number.
        self._next = partition.partition
        #: Ranges of missing numbers: first (inclusive), end (exclusive), ascending.
        self._gaps: list[tuple[int, int]] = []
        #: Counts of repeated records, and of records after a larger number.
        self._doubled = 0
        self._out_of_order = 0

    def check_record(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Check the next record of an output partition, which must be in the order of its number.

        Gaps, duplicates and records out of order are counted; UnexpectedRecord is raised for a
        record that no input record becomes.
        """
        number = self._number_of(key)
        if number is None or value != transformed(input_value(number)):
            raise UnexpectedRecord(self._partition, offset)
        if number == self._next:
            self._next += self._step
        elif number > self._next:
            self._gaps.append((self._next, number))
            self._next = number + self._step
        elif self._fill_gap(number):
            self._out_of_order += 1
        else:
            self._doubled += 1

    def count_faults(self) -> OutputFaults:
        """Return the missing, duplicate and misplaced records of the partition.

        It must be called after all records were checked.
        """
        last = max(self._next, self._partition.partition)
        gaps = [*self._gaps, (last, self._end)]
        missing = sum(len(range(first, end, self._step)) for first, end in gaps)
        return OutputFaults(missing, self._doubled, self._out_of_order)

    def _number_of(self, key: bytes | None) -> int | None:
        """Return the number in a key, None if no record of this partition has that key."""
        if key is None or not key.isdigit():
            return None
        number = int(key)
        is_here = number % self._step == self._partition.partition and number < self._end
        return number if is_here else None

    def _fill_gap(self, number: int) -> bool:
        """Remove a number from the missing ranges; return False if it is in none of them.

        True means that its record arrived late, False that it arrived before.
        """
        place = bisect_right(self._gaps, (number, self._end)) - 1
        if place < 0:
            return False
        first, end = self._gaps[place]
        if not first <= number < end:
            return False
        left = ((first, number), (number + self._step, end))
        self._gaps[place : place + 1] = [gap for gap in left if gap[0] < gap[1]]
        return True
