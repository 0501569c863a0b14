"""Convert a topic's configuration to the settings of its logs.

Source: Kafka's LogConfig; `configs.md`.
"""

from __future__ import annotations

from engine.config.topic_config import TopicConfig
from engine.log.log_config import LogConfig
from engine.records.codec import Codec, parse_codec
from engine.records.record import TimestampType

_AS_PRODUCED = "producer"
_UNCOMPRESSED = "uncompressed"
_LOG_APPEND_TIME = "LogAppendTime"


def build_log_config(topic: TopicConfig, *, producer_id_expiration_ms: int) -> LogConfig:
    """Return the settings of a topic's logs.

    `topic` has the topic's effective settings; `producer_id_expiration_ms` is a setting of the
    broker.
    """
    codec = _codec(topic.compression_type)
    by_broker = topic.message_timestamp_type == _LOG_APPEND_TIME
    return LogConfig(
        segment_bytes=topic.segment_bytes,
        segment_ms=_segment_ms(topic),
        segment_jitter_ms=topic.segment_jitter_ms,
        segment_index_bytes=topic.segment_index_bytes,
        index_interval_bytes=topic.index_interval_bytes,
        preallocate=topic.preallocate,
        max_message_bytes=topic.max_message_bytes,
        compression_type=codec,
        compression_level=_compression_level(topic, codec),
        message_timestamp_type=(
            TimestampType.LOG_APPEND_TIME if by_broker else TimestampType.CREATE_TIME
        ),
        message_timestamp_before_max_ms=topic.timestamp_before_ms_max,
        message_timestamp_after_max_ms=topic.timestamp_after_ms_max,
        is_deleting=topic.is_deleted,
        is_compacted=topic.is_compacted,
        delete_retention_ms=topic.delete_retention_ms,
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        retention_ms=topic.retention_ms,
        retention_bytes=topic.retention_bytes,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        producer_id_expiration_ms=producer_id_expiration_ms,
        is_down_conversion_enabled=topic.message_downconversion_enable,
    )


def _segment_ms(topic: TopicConfig) -> int:
    """Return the age in ms at which a segment rolls.

    At most max.compaction.lag.ms in a compacted topic, because the cleaner needs closed segments.
    """
    if topic.is_compacted and topic.max_compaction_lag_ms > 0:
        return min(topic.segment_ms, topic.max_compaction_lag_ms)
    return topic.segment_ms


def _codec(name: str) -> Codec | None:
    """Return the codec of `compression.type`, None for `producer`."""
    if name == _AS_PRODUCED:
        return None
    return Codec.NONE if name == _UNCOMPRESSED else parse_codec(name)


def _compression_level(topic: TopicConfig, codec: Codec | None) -> int | None:
    """Return the topic's compression level for its codec, None for codecs without levels."""
    if codec is Codec.GZIP:
        return topic.compression_gzip_level
    if codec is Codec.LZ4:
        return topic.compression_lz4_level
    return topic.compression_zstd_level if codec is Codec.ZSTD else None
