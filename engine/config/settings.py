"""The sources of a broker's settings, and their precedence.

```
1  dynamic, of this broker        /config/brokers/<id>
2  dynamic, of all brokers        /config/brokers/<default>
3  static                         server.properties
4  default                        the table
```

The first source that has a key counts. Some settings have several keys, listed here by precedence;
the source takes precedence over the order of keys:

```
log.retention.ms   log.retention.minutes   log.retention.hours
log.roll.ms        log.roll.hours
log.roll.jitter.ms log.roll.jitter.hours
log.flush.interval.ms                      log.flush.scheduler.interval.ms
```

Source: kafka.server.DynamicBrokerConfig; RET-3, LOG-7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple

from engine.config.key import ConfigKey, UpdateMode, broker_keys
from engine.config.value import ConfigValue, parse_value


class SettingSource(Enum):
    """The sources of a value, with their numbers in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class SettingSynonym(NamedTuple):
    """A source in which a setting has a value, under its own key or a synonym."""

    name: str
    value: str | None
    source: SettingSource


_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_RETENTION, _RETENTION),
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_JITTER, _JITTER),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
# Keys that may have a listener's and a mechanism's prefix.
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")


class BrokerSettings:
    """The texts of a broker's settings from all sources; a change creates a new object."""

    __slots__ = ("dynamic_broker", "dynamic_default", "generated_broker_id", "static")

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_broker: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
        *,
        generated_broker_id: int | None = None,
    ) -> None:
        """Create a broker's settings from the properties file (`static`) and the znodes.

        `dynamic_broker` are those of the broker's own znode, `dynamic_default` those of the znode
        for all brokers.
        """
        self.static = _set_both_ids(static)
        #: The generated broker id if none is configured; it is above all ids that may be
        #: configured.
        self.generated_broker_id = generated_broker_id
        self.dynamic_broker = dynamic_broker or {}
        self.dynamic_default = dynamic_default or {}

    def with_dynamic(
        self, dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str]
    ) -> BrokerSettings:
        """Return these settings with other settings of the znodes, after a change at run time."""
        return BrokerSettings(
            self.static,
            dynamic_broker,
            dynamic_default,
            generated_broker_id=self.generated_broker_id,
        )

    def with_generated_id(self, broker_id: int) -> BrokerSettings:
        """Return these settings with a generated broker id, because none is configured."""
        return BrokerSettings(
            self.static, self.dynamic_broker, self.dynamic_default, generated_broker_id=broker_id
        )

    def configured_text(self, name: str) -> str | None:
        """Return the text of exactly this key in the first source that sets it, None without one.

        Defaults do not count, nor other keys of the same setting such as `log.retention.hours`.
        """
        for source in (self.dynamic_broker, self.dynamic_default, self.static):
            text = source.get(name)
            if text is not None:
                return text
        return None

    def value(self, name: str) -> ConfigValue:
        """Return the value of a known key, the default if it is not set; raises ConfigError."""
        text = self.configured_text(name)
        return _default_value(name) if text is None else parse_value(broker_keys()[name], text)

    def synonyms_of(self, name: str) -> list[SettingSynonym]:
        """Return all sources that set a value of a setting, the effective one first.

        The list begins with the key itself: a setting that only has a value by another key (hours
        instead of ms) has no synonyms. The values of passwords are None.
        """
        names = synonym_names(name)
        shown = is_shown(name)
        defaults = broker_keys()
        synonyms = []
        for source, texts in (
            (SettingSource.DYNAMIC_BROKER, self.dynamic_broker),
            (SettingSource.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
            (SettingSource.STATIC_BROKER, self.static),
            (SettingSource.DEFAULT, None),
        ):
            for synonym in names:
                text = _default_text(defaults.get(synonym)) if texts is None else texts.get(synonym)
                if text is not None:
                    synonyms.append(SettingSynonym(synonym, text if shown else None, source))
        while synonyms and synonyms[0].name != name:
            del synonyms[0]
        return synonyms

    def unknown_names(self) -> list[str]:
        """Return the names in the properties file that are in no table, sorted.

        Plug-ins may read them.
        """
        return sorted(name for name in self.static if find_key(name) is None)


def synonym_names(name: str) -> tuple[str, ...]:
    """Return the keys that can give a setting its value, highest precedence first."""
    names = _SYNONYMS.get(name)
    if names is not None:
        return names
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return (name,)
    base = match.group(1)
    return name, next((key for key in _MECHANISM_KEYS if base.endswith(key)), base)


def find_key(name: str) -> ConfigKey | None:
    """Return the row of a key in the broker's table, None for an unknown key.

    `name` may have a listener's prefix.
    """
    keys = broker_keys()
    exact = keys.get(name)
    if exact is not None:
        return exact
    return next((keys[synonym] for synonym in synonym_names(name) if synonym in keys), None)


def is_shown(name: str) -> bool:
    """Return True if a key's value may be shown: the key is known and no password."""
    key = find_key(name)
    return key is not None and not key.is_sensitive


def is_secret(name: str) -> bool:
    """Return True if a key is known as a password; `name` may have a listener's prefix."""
    key = find_key(name)
    return key is not None and key.is_sensitive


def _default_text(key: ConfigKey | None) -> str | None:
    """Return the default of a key, None if it has none, as keys that are only set in znodes."""
    if key is None or key.update_mode is UpdateMode.DYNAMIC_ONLY:
        return None
    return key.default


@cache
def _default_value(name: str) -> ConfigValue:
    """Return the parsed default of a key; raises ConfigError if a value is required."""
    key = broker_keys()[name]
    return parse_value(key, key.default)


def _set_both_ids(static: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings with `broker.id` and `node.id`, if one of them is set."""
    broker_id, node_id = static.get("broker.id"), static.get("node.id")
    if broker_id is None and node_id is not None:
        return {**static, "broker.id": node_id}
    if broker_id is not None and node_id is None:
        return {**static, "node.id": broker_id}
    return static
