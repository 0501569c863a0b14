"""The record type of every format, and the types of timestamps."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

NO_TIMESTAMP = -1
NO_SEQUENCE = -1
SEQUENCE_MAX = 0x7FFFFFFF

Header: TypeAlias = tuple[str, bytes | None]


class TimestampType(IntEnum):
    """Origin of a record's timestamp: its producer, the broker on append, or none (magic 0)."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @property
    def label(self) -> str:
        """Return the name that Kafka's tools print, such as `CreateTime`."""
        return _LABELS[self]


_LABELS = {
    TimestampType.NONE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class Record(NamedTuple):
    """One record with its absolute offset and timestamps.

    `timestamp_ms` is −1 without a timestamp; `sequence` is −1 without a producer. `crc` and
    `is_crc_valid` exist only in magic 0 and 1, where each message has its own checksum.
    """

    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    sequence: int = NO_SEQUENCE
    crc: int | None = None
    is_crc_valid: bool | None = None

    @property
    def key_size(self) -> int:
        """Return the key's size in bytes, −1 for null."""
        return -1 if self.key is None else len(self.key)

    @property
    def value_size(self) -> int:
        """Return the value's size in bytes, −1 for null."""
        return -1 if self.value is None else len(self.value)


def increment_sequence(sequence: int, increment: int) -> int:
    """Return a producer sequence plus `increment`; 2^31 − 1 is followed by 0.

    Damaged (negative) operands wrap in 32 bits as they do in Kafka, so that a dump of a bad batch
    shows the same numbers. Source: `DefaultRecordBatch.incrementSequence`.
    """
    if sequence > _int32(SEQUENCE_MAX - increment):
        return _int32(increment - (SEQUENCE_MAX - sequence) - 1)
    return _int32(sequence + increment)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return a producer sequence minus `decrement`; 0 is preceded by 2^31 − 1."""
    if sequence < decrement:
        return SEQUENCE_MAX - (decrement - sequence) + 1
    return sequence - decrement


def _int32(value: int) -> int:
    """Return a number wrapped to 32 bits, as Java's int overflows."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000
