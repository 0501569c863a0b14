"""Settings that differ between brokers. Pure.

Settings that have to differ are left out: ids, addresses, racks, directories, key files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.config_admin import ConfigEntry
from engine.errors import EngineError

#: Settings of which each broker, or each KRaft node, has its own value.
_OF_ONE_BROKER: Final = frozenset(
    (
        *("broker.id", "node.id", "broker.rack", "host.name", "port"),
        *("advertised.host.name", "advertised.port", "advertised.listeners", "listeners"),
        *("log.dir", "log.dirs", "metadata.log.dir", "process.roles"),
        *("broker.session.uuid", "reserved.broker.max.id"),
        # Brokers may have different addresses of the same ensemble.
        "zookeeper.connect",
    )
)
_FILES: Final = ("keystore.location", "keystore.certificate.chain", "keystore.key")


class BrokerValue(NamedTuple):
    """The value of a setting on a broker, None if it has none or does not return it."""

    broker_id: int
    value: str | None


class SettingDifference(NamedTuple):
    """A setting of which brokers have different values."""

    setting: str
    values: tuple[BrokerValue, ...]


def setting_differences(
    configs: Mapping[int, Sequence[ConfigEntry] | EngineError],
) -> list[SettingDifference]:
    """Return the settings whose values differ between brokers, by name, with all values.

    `configs` are the described settings by broker id. Brokers that did not return theirs are left
    out. A setting that a broker does not know (being of another release) counts as one without a
    value. Secrets are not returned by brokers, so they are not compared.
    """
    shown: dict[int, dict[str, str | None]] = {
        broker_id: {entry.name: entry.value for entry in entries if not entry.is_sensitive}
        for broker_id, entries in configs.items()
        if not isinstance(entries, EngineError)
    }
    names = sorted({name for values in shown.values() for name in values})
    differences = []
    for name in names:
        values = tuple(BrokerValue(id_, shown[id_].get(name)) for id_ in sorted(shown))
        if len({value.value for value in values}) > 1 and not _is_of_one_broker(name):
            differences.append(SettingDifference(name, values))
    return differences


def _is_of_one_broker(name: str) -> bool:
    """Return True for settings that may differ between brokers: ids, addresses, key files."""
    return name in _OF_ONE_BROKER or name.endswith(_FILES)
