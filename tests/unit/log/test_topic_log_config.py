"""Topic settings become a log's."""

from __future__ import annotations

import pytest

from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.log.log_config import LONG_MAX, LogConfig
from engine.log.topic_log_config import build_log_config
from engine.records.codec import Codec
from engine.records.record import TimestampType


def config_of(**overrides: str) -> LogConfig:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    topic = TopicConfig.of(named, BrokerSettings({}))
    return build_log_config(topic, producer_id_expiration_ms=86_400_000)


def test_a_topic_without_settings_has_kafkas_defaults() -> None:
    assert config_of() == LogConfig()


@pytest.mark.parametrize(
    ("name", "codec"),
    [("producer", None), ("uncompressed", Codec.NONE), ("zstd", Codec.ZSTD), ("lz4", Codec.LZ4)],
)
def test_the_codec_is_the_topics_or_the_producers(name: str, codec: Codec | None) -> None:
    assert config_of(compression_type=name).compression_type is codec


def test_a_level_goes_with_its_codec() -> None:
    chosen = config_of(compression_type="gzip", compression_gzip_level="3")
    assert chosen.compression_level == 3
    assert config_of(compression_gzip_level="3").compression_level is None


def test_times_may_be_the_brokers() -> None:
    found = config_of(message_timestamp_type="LogAppendTime")
    assert found.message_timestamp_type is TimestampType.LOG_APPEND_TIME


def test_a_log_that_is_only_compacted_deletes_nothing() -> None:
    found = config_of(cleanup_policy="compact", flush_ms=str(LONG_MAX))
    assert (found.is_compacted, found.is_deleting) == (True, False)


def test_old_consumers_may_be_shut_out() -> None:
    assert not config_of(message_downconversion_enable="false").is_down_conversion_enabled


def test_a_compacted_topic_takes_its_settings_of_cleaning() -> None:
    found = config_of(
        cleanup_policy="compact,delete",
        delete_retention_ms="5",
        min_cleanable_dirty_ratio="0.25",
        min_compaction_lag_ms="6",
        max_compaction_lag_ms="7",
    )
    assert (5, 0.25, 6, 7) == (
        found.delete_retention_ms,
        found.min_cleanable_dirty_ratio,
        found.min_compaction_lag_ms,
        found.max_compaction_lag_ms,
    )


def test_a_segment_that_has_to_be_cleaned_soon_is_closed_soon() -> None:
    assert config_of(cleanup_policy="compact", max_compaction_lag_ms="7").segment_ms == 7
    week_ms = LogConfig().segment_ms
    assert config_of(max_compaction_lag_ms="7").segment_ms == week_ms
