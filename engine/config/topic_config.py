"""The settings of one topic: its overrides, and the broker's values for all other keys.

| setting | value |
|---|---|
| set for the topic | the override |
| not set, with broker keys | the first one with a value: `log.retention.ms`, minutes, hours |
| not set, without broker keys | the default in the table |

Source: org.apache.kafka.storage.internals.log.LogConfig, ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.config.key import ConfigKey, topic_keys
from engine.config.settings import BrokerSettings
from engine.config.value import ConfigValue, parse_value
from engine.errors import ConfigError

COMPACT = "compact"
DELETE = "delete"

#: The value of retention settings without a limit.
UNLIMITED = -1

_LONG_MAX = (1 << 63) - 1
_MS = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}
# Settings that must be off in a cluster with ZooKeeper or without tiered storage.
_REMOTE_STORAGE = "remote.storage.enable"
_MUST_BE_FALSE = ("remote.log.copy.disable", "remote.log.delete.on.disable", _REMOTE_STORAGE)
#: Kafka's message for settings that need KRaft.
_OF_KRAFT = (
    "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under "
    "Zookeeper's mode."
)


class TopicConfig(NamedTuple):
    """The values of all topic keys, each named as its key with underscores for dots."""

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_downconversion_enable: bool
    message_format_version: str
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_difference_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @classmethod
    def of(cls, overrides: Mapping[str, str], settings: BrokerSettings) -> TopicConfig:
        """Return a topic's values from its overrides and the broker's settings; raises ConfigError.

        Overrides of unknown keys are ignored.
        """
        values = [
            _effective_value(key, overrides.get(name), settings)
            for name, key in topic_keys().items()
        ]
        # Fields and keys are in the same order, which a test checks.
        return cls._make(values)

    def value(self, name: str) -> ConfigValue:
        """Return the value of a topic key by its name."""
        value: ConfigValue = getattr(self, name.replace(".", "_"))
        return value

    @property
    def is_compacted(self) -> bool:
        """True if the cleaner compacts the topic."""
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """True if old segments are deleted by time and size retention."""
        return DELETE in self.cleanup_policy

    @property
    def timestamp_before_ms_max(self) -> int:
        """How far in ms a record's timestamp may be in the past; either of two keys sets it."""
        if self.message_timestamp_before_max_ms != _LONG_MAX:
            return self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms

    @property
    def timestamp_after_ms_max(self) -> int:
        """How far in ms a record's timestamp may be in the future; either of two keys sets it."""
        if self.message_timestamp_after_max_ms != _LONG_MAX:
            return self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms


def check_topic_overrides(overrides: Mapping[str, str], settings: BrokerSettings) -> None:
    """Raise ConfigError if the settings of a topic are invalid or contradictory."""
    for name in overrides:
        if name not in topic_keys():
            raise ConfigError(name, overrides[name], "is no setting of topics")
    config = TopicConfig.of(overrides, settings)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            "min.compaction.lag.ms",
            config.min_compaction_lag_ms,
            f"must not exceed max.compaction.lag.ms ({config.max_compaction_lag_ms})",
        )
    for name in _MUST_BE_FALSE:
        if name in overrides and config.value(name):
            rule = "needs tiered storage, which is not there"
            message = None if name == _REMOTE_STORAGE else _OF_KRAFT
            raise ConfigError(name, overrides[name], rule, kafka_message=message)


def _effective_value(key: ConfigKey, override: str | None, settings: BrokerSettings) -> ConfigValue:
    """Return a topic's value of a key: its override, else the broker's value, else the default."""
    if override is not None:
        return parse_value(key, override)
    for name in key.broker_synonyms:
        value = settings.value(name)
        if value is None:
            continue
        if name in _MS:
            assert isinstance(value, int)
            value *= _MS[name]
        if key.name == "retention.ms" and isinstance(value, int) and value < 0:
            return UNLIMITED
        return value
    return parse_value(key, key.default)
