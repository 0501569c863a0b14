"""Keys of Kafka's configs, read from tables of text on first use.

A row of a table, its cells between bars:

```
name | type | default | valid | importance | brokers: update mode, topics: broker keys | internal

default    null: none    !: must be given
valid      -: every value of the type
           [a,...,b]  [a,...]  [a,...,b] or -1    numbers, both ends inclusive
           [x, y]  any case [X, Y]                texts, or elements of a list
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
    """Types of values, by their number in DescribeConfigs."""

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
    """The times at which a broker's key may change."""

    #: Only at a start.
    READ_ONLY = "read-only"
    #: At run time, one broker at a time.
    PER_BROKER = "per-broker"
    #: At run time, for one broker or for all.
    CLUSTER_WIDE = "cluster-wide"
    #: At run time and nowhere else.
    DYNAMIC_ONLY = "dynamic-only"


class ConfigKey(NamedTuple):
    """One key. Its documentation is in the reference, not here."""

    name: str
    type: ConfigType
    #: As a text, or None.
    default: str | None
    is_required: bool
    #: The rule in the table's words.
    valid: str
    importance: str
    is_internal: bool = False
    #: Of a broker's keys only.
    update_mode: UpdateMode | None = None
    #: Of a topic's keys only: where the default comes from, the first of highest precedence.
    broker_synonyms: tuple[str, ...] = ()

    @property
    def is_sensitive(self) -> bool:
        """Return whether its value is never shown."""
        return self.type is ConfigType.PASSWORD


@cache
def broker_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of a broker, sorted by name."""
    from engine.config.tables.broker_3_9_1 import BROKER_ROWS

    return {
        key.name: key._replace(update_mode=UpdateMode(cells[0]), is_internal=len(cells) > 1)
        for key, cells in _rows(BROKER_ROWS)
    }


@cache
def topic_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of a topic, sorted by name."""
    from engine.config.tables.entity_3_9_1 import TOPIC_ROWS

    return {
        key.name: key._replace(
            broker_synonyms=tuple(cells[0].split(", ")) if cells[0] != "-" else ()
        )
        for key, cells in _rows(TOPIC_ROWS)
    }


@cache
def quota_keys() -> Mapping[str, ConfigKey]:
    """Return the quotas of users and clients."""
    from engine.config.tables.entity_3_9_1 import QUOTA_ROWS

    return _plain(QUOTA_ROWS)


@cache
def scram_keys() -> Mapping[str, ConfigKey]:
    """Return the mechanisms under which a user's credentials are kept."""
    from engine.config.tables.entity_3_9_1 import SCRAM_ROWS

    return _plain(SCRAM_ROWS)


@cache
def ip_keys() -> Mapping[str, ConfigKey]:
    """Return the quotas of addresses."""
    from engine.config.tables.entity_3_9_1 import IP_ROWS

    return _plain(IP_ROWS)


@cache
def client_metrics_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of a subscription to metrics of clients."""
    from engine.config.tables.entity_3_9_1 import CLIENT_METRICS_ROWS

    return _plain(CLIENT_METRICS_ROWS)


@cache
def producer_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's producer."""
    from engine.config.tables.client_3_9_1 import PRODUCER_ROWS

    return _plain(PRODUCER_ROWS)


@cache
def consumer_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's consumer."""
    from engine.config.tables.client_3_9_1 import CONSUMER_ROWS

    return _plain(CONSUMER_ROWS)


@cache
def admin_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of Java's admin client."""
    from engine.config.tables.client_3_9_1 import ADMIN_ROWS

    return _plain(ADMIN_ROWS)


def _plain(rows: str) -> dict[str, ConfigKey]:
    """Return the keys of a table by name; a further cell marks a key as internal."""
    return {key.name: key._replace(is_internal=bool(cells)) for key, cells in _rows(rows)}


def _rows(rows: str) -> list[tuple[ConfigKey, list[str]]]:
    """Return each row's key, and the cells that its kind of table adds."""
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
