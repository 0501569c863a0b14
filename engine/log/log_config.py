"""The settings of one log: Kafka's topic configurations that storage uses.

Field names are the configuration names with `_` for `.` and `-`. A change of settings replaces the
whole value (`LocalLog.configure`).
"""

from __future__ import annotations

from typing import NamedTuple

from engine.limits import OPENED_MEMORY_BYTES_MAX, UNCOMPRESSED_BATCH_FACTOR
from engine.records.codec import Codec
from engine.records.record import TimestampType

#: Kafka's value for "never" and "no limit" in configurations of type long.
LONG_MAX = (1 << 63) - 1

_DAY_MS = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """One log's settings, with the defaults of Kafka 3.9.

    `compression_type` None is Kafka's `producer`: batches keep their codec. The two limits on
    message timestamps are in ms; −1 in `retention_ms` and `retention_bytes` means no limit.
    `is_down_conversion_enabled` allows consumers of magic 0 and 1 (message.downconversion.enable).
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False
    max_message_bytes: int = 1_048_588
    compression_type: Codec | None = None
    compression_level: int | None = None
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = LONG_MAX
    is_deleting: bool = True
    is_compacted: bool = False
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    producer_id_expiration_ms: int = _DAY_MS
    is_down_conversion_enabled: bool = True

    @property
    def opened_batch_bytes_max(self) -> int:
        """Return the largest decompressed size of a batch that a broker decompresses.

        Limits the memory for a batch that decompresses to much more than its size. Records that fit
        into the memory reserved for decompression are always allowed.
        """
        return max(UNCOMPRESSED_BATCH_FACTOR * self.max_message_bytes, OPENED_MEMORY_BYTES_MAX)
