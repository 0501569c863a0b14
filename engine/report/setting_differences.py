"""Settings of brokers that are not the same on all of them. Pure.

Left out are those that differ by their nature: ids, addresses, racks, directories, files of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.config_admin import ConfigEntry
from engine.errors import EngineError

#: Settings that each broker, or each node of KRaft, has its own value of.
_OF_ONE_BROKER: Final = frozenset(
    (
        *("broker.id", "node.id", "broker.rack", "host.name", "port"),
        *("advertised.host.name", "advertised.port", "advertised.listeners", "listeners"),
        *("log.dir", "log.dirs", "metadata.log.dir", "process.roles"),
        *("broker.session.uuid", "reserved.broker.max.id"),
        # Brokers of one cluster have one ensemble, whichever of its addresses each is given.
        "zookeeper.connect",
    )
)
_FILES: Final = ("keystore.location", "keystore.certificate.chain", "keystore.key")


class BrokerValue(NamedTuple):
    """The value of a setting on a broker; None if it has none, or is not shown."""

    broker_id: int
    value: str | None


class SettingDifference(NamedTuple):
    """A setting with different values on brokers."""

    setting: str
    values: tuple[BrokerValue, ...]


def setting_differences(
    configs: Mapping[int, Sequence[ConfigEntry] | EngineError],
) -> list[SettingDifference]:
    """Return the settings that differ between the brokers that return theirs, by name.

    A setting that a broker does not know (of another release) counts as one without a value.
    Passwords are not returned: they are not compared.
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
    """Return whether brokers must or may differ in a setting: ids, addresses, key files."""
    return name in _OF_ONE_BROKER or name.endswith(_FILES)
