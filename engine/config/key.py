"""The keys of Kafka's configs, parsed from text tables on first use.

The cells of a row:

```
name | type | default | valid | importance | brokers: update mode, topics: broker keys | internal

default    null: none    !: required
valid      -: every value of the type
           [a,...,b]  [a,...]  [a,...,b] or -1    numbers, both ends inclusive
           [x, y]  any case [X, Y]                choices, for a text or each element of a list
           non-empty string    release    replicas
```

Source: D19; ConfigDef and KafkaConfig of 3.9.1, read by reflection (`configs.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple


class ConfigType(Enum):
    """The types of values, with their numbers in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(Enum):
    """When, and in which scope, a broker key may change."""

    #: Only at a restart.
    READ_ONLY = "read-only"
    #: At run time, one broker at a time.
    PER_BROKER = "per-broker"
    #: At run time, for one broker or for all.
    CLUSTER_WIDE = "cluster-wide"
    #: Only at run time, not in the properties file.
    DYNAMIC_ONLY = "dynamic-only"


class ConfigKey(NamedTuple):
    """One key. Its documentation is not here, but in the reference."""

    name: str
    type: ConfigType
    #: As text, or None.
    default: str | None
    is_required: bool
    #: The rule, as written in the table.
    valid: str
    importance: str
    is_internal: bool = False
    #: Only for broker keys.
    update_mode: UpdateMode | None = None
    #: Only for topic keys: the broker keys that give the default, highest precedence first.
    broker_synonyms: tuple[str, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        """True if the value is a password, which is never shown."""
        return self.type is ConfigType.PASSWORD


@cache
def broker_keys() -> Mapping[str, ConfigKey]:
    """Return the broker keys by name, sorted."""
    from engine.config.tables.broker_3_9_1 import BROKER_ROWS

    return {
        key.name: key._replace(update_mode=UpdateMode(cells[0]), is_internal=len(cells) > 1)
        for key, cells in _parse_rows(BROKER_ROWS)
    }


@cache
def topic_keys() -> Mapping[str, ConfigKey]:
    """Return the topic keys by name, sorted, with the broker keys that set their defaults."""
    from engine.config.tables.entity_3_9_1 import TOPIC_ROWS

    return {
        key.name: key._replace(
            broker_synonyms=tuple(cells[0].split(", ")) if cells[0] != "-" else ()
        )
        for key, cells in _parse_rows(TOPIC_ROWS)
    }


@cache
def quota_keys() -> Mapping[str, ConfigKey]:
    """Return the quota keys of users and client ids by name."""
    from engine.config.tables.entity_3_9_1 import QUOTA_ROWS

    return _keys_by_name(QUOTA_ROWS)


@cache
def scram_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of users' credentials by name: the SCRAM mechanisms."""
    from engine.config.tables.entity_3_9_1 import SCRAM_ROWS

    return _keys_by_name(SCRAM_ROWS)


@cache
def ip_keys() -> Mapping[str, ConfigKey]:
    """Return the quota keys of IP addresses by name."""
    from engine.config.tables.entity_3_9_1 import IP_ROWS

    return _keys_by_name(IP_ROWS)


@cache
def client_metrics_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of client metrics subscriptions by name."""
    from engine.config.tables.entity_3_9_1 import CLIENT_METRICS_ROWS

    return _keys_by_name(CLIENT_METRICS_ROWS)


@cache
def producer_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's producer by name."""
    from engine.config.tables.client_3_9_1 import PRODUCER_ROWS

    return _keys_by_name(PRODUCER_ROWS)


@cache
def consumer_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's consumer by name."""
    from engine.config.tables.client_3_9_1 import CONSUMER_ROWS

    return _keys_by_name(CONSUMER_ROWS)


@cache
def admin_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's admin client by name."""
    from engine.config.tables.client_3_9_1 import ADMIN_ROWS

    return _keys_by_name(ADMIN_ROWS)


def _keys_by_name(rows: str) -> dict[str, ConfigKey]:
    """Return the keys of a table by name; an additional cell marks a key as internal."""
    return {key.name: key._replace(is_internal=bool(cells)) for key, cells in _parse_rows(rows)}


def _parse_rows(rows: str) -> list[tuple[ConfigKey, list[str]]]:
    """Return the key in each row of a table, with the row's additional cells."""
    parsed = []
    for row in rows.splitlines():
        name, type_name, default, valid, importance, *more = row.split(" | ")
        key = ConfigKey(
            name,
            ConfigType[type_name.upper()],
            None if default in ("null", "!") else default,
            default == "!",
            valid,
            importance,
        )
        parsed.append((key, more))
    return parsed
