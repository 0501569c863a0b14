"""Reasons for which single records are refused, in Kafka's words, which producers print.

A Java producer throws the text of a record, and its application logs it. Responses have texts only
in versions that accept magic 2 alone.

Source: Kafka's LogValidator, the `toString` of DefaultRecord, PartialDefaultRecord and
ProduceResponse.RecordError.
Differs: the sizes of a PartialDefaultRecord (of a compressed batch that is stored unchanged) are 0
or −1, where Kafka has those of key and value, which are not read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.model import TopicPartition
from engine.records.decode import int64
from engine.records.legacy import LegacyMessage
from engine.records.record import Record

_SHOWN_MAX = 3


class RecordError(NamedTuple):
    """A refused record: its index in the batch, and the reason."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


def key_missing(topic_partition: TopicPartition) -> str:
    """Return the error of a record without a key in a compacted topic."""
    return f"Compacted topic cannot accept message without key in topic partition {topic_partition}"


def time_out_of_range_message(
    record: Record | LegacyMessage, now_ms: int, before_max_ms: int, after_max_ms: int
) -> str:
    """Return the error of a record whose timestamp is outside of the topic's limits."""
    return (
        f"Timestamp {record.timestamp_ms} of message with offset {record.offset} is out of range. "
        f"The timestamp should be within [{int64(now_ms - before_max_ms)}, "
        f"{int64(now_ms + after_max_ms)}]"
    )


def append_time_sent_message(record: Record | LegacyMessage, *, is_skimmed: bool) -> str:
    """Return the error of a record with timestamp type LogAppendTime, which only brokers set.

    `is_skimmed`: the broker did not parse key and value, and Kafka names another class then.
    """
    kind = "PartialDefaultRecord" if is_skimmed else "DefaultRecord"
    smallest = -1 if is_skimmed else 0
    return (
        f"Invalid timestamp type in message {kind}(offset={record.offset}, "
        f"timestamp={record.timestamp_ms}, key={max(record.key_size, smallest)} bytes, "
        f"value={max(record.value_size, smallest)} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )


def times_refused() -> str:
    """Return the error of a batch with record timestamps outside of the topic's limits."""
    return "One or more records have been rejected due to invalid timestamp"


def records_refused_message(errors: Sequence[RecordError]) -> str:
    """Return the error message of a batch with refused records, in Kafka's words.

    For all errors except timestamps, which have a separate message.
    """
    shown = ", ".join(map(str, errors[:_SHOWN_MAX]))
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
