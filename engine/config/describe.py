"""The content of DescribeConfigs responses, computed from settings only.

| requested | response |
|---|---|
| a broker | every key that is not internal, and every other key that is set |
| the default of all brokers (empty name) | the settings of that default |
| a topic | every topic key |

The source of a value is that of its first synonym; without a synonym it is DEFAULT, even if another
key gives the value.

Entries are sorted by name; the API handler puts them into Kafka's order.

Source: kafka.server.ConfigHelper of 3.9.1; a real broker's responses.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.config.key import UpdateMode, broker_keys, topic_keys
from engine.config.settings import (
    BrokerSettings,
    SettingSource,
    SettingSynonym,
    find_key,
    is_shown,
)
from engine.config.topic_config import TopicConfig
from engine.config.value import format_value

#: The type number of unknown keys.
_UNKNOWN_TYPE = 0


class DescribedConfig(NamedTuple):
    """One entry of a response; `type` is the number in DescribeConfigs."""

    name: str
    value: str | None
    is_read_only: bool
    source: SettingSource
    is_sensitive: bool
    synonyms: tuple[SettingSynonym, ...]
    type: int

    @property
    def is_default(self) -> bool:
        """True if the key is not set anywhere; version 0 of DescribeConfigs has this field."""
        return self.source is SettingSource.DEFAULT


def describe_broker(settings: BrokerSettings) -> list[DescribedConfig]:
    """Return all settings of a broker, sorted by name; raises ConfigError for an invalid value."""
    names = {
        key.name
        for key in broker_keys().values()
        if not key.is_internal and key.update_mode is not UpdateMode.DYNAMIC_ONLY
    }
    names.update(settings.static, settings.dynamic_default, settings.dynamic_broker)
    return [_broker_entry(settings, name, per_broker=True) for name in sorted(names)]


def describe_broker_defaults(settings: BrokerSettings) -> list[DescribedConfig]:
    """Return the settings that are stored for all brokers together, sorted by name."""
    return [
        _broker_entry(settings, name, per_broker=False) for name in sorted(settings.dynamic_default)
    ]


def describe_topic(
    settings: BrokerSettings, topic_overrides: dict[str, str]
) -> list[DescribedConfig]:
    """Return all settings of a topic, sorted by name; raises ConfigError for an invalid value."""
    config = TopicConfig.of(topic_overrides, settings)
    entries = []
    for name, key in topic_keys().items():
        value = format_value(key, config.value(name))
        synonyms = []
        if name in topic_overrides:
            synonyms.append(SettingSynonym(name, value, SettingSource.TOPIC))
        if key.broker_synonyms:
            synonyms += settings.synonyms_of(key.broker_synonyms[0])
        entries.append(
            DescribedConfig(
                name,
                value,
                False,
                _effective_source(synonyms),
                False,
                tuple(synonyms),
                key.type.value,
            )
        )
    return entries


def _broker_entry(settings: BrokerSettings, name: str, *, per_broker: bool) -> DescribedConfig:
    """Return one setting with its synonyms, of one broker or of all brokers together.

    The value is None if the setting is secret.
    """
    key = find_key(name)
    synonyms = settings.synonyms_of(name)
    if not per_broker:
        synonyms = [s for s in synonyms if s.source is SettingSource.DYNAMIC_DEFAULT_BROKER]
    value = None
    if is_shown(name):
        assert key is not None
        if not per_broker:
            value = settings.dynamic_default[name]
        elif key.name == name and key.update_mode is not UpdateMode.DYNAMIC_ONLY:
            value = format_value(key, settings.value(name))
        else:
            value = settings.configured_text(name)
    return DescribedConfig(
        name=name,
        value=value,
        is_read_only=not _is_dynamic(name),
        source=_effective_source(synonyms),
        is_sensitive=not is_shown(name),
        synonyms=tuple(synonyms),
        type=_UNKNOWN_TYPE if key is None else key.type.value,
    )


def _is_dynamic(name: str) -> bool:
    """Return True if a broker key may change at run time.

    Keys with a listener's prefix and replication throttles do not count, as in Kafka's response.
    """
    key = broker_keys().get(name)
    return key is not None and key.update_mode in (
        UpdateMode.PER_BROKER,
        UpdateMode.CLUSTER_WIDE,
    )


def _effective_source(synonyms: list[SettingSynonym]) -> SettingSource:
    """Return where the effective value of a setting comes from; DEFAULT without synonyms."""
    return synonyms[0].source if synonyms else SettingSource.DEFAULT
