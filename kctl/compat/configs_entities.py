"""The entities in the arguments of `kafka-configs`.

Source: ConfigCommandOptions.entityTypes, entityNames of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.errors import EngineError
from kctl.compat.java_options import GivenOptions

#: Options that name an entity, and those of defaults, with their types.
NAME_FLAGS: Final = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
DEFAULT_FLAGS: Final = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}


class ConfigsRefused(EngineError):
    """The tool ends with a sentence on stderr."""


class Entities(NamedTuple):
    """Types and names in the order of the options; the name of a default is empty."""

    types: list[str]
    names: list[str]

    @property
    def has_name(self) -> bool:
        """Return whether one of them is named."""
        return any(self.names)


def entity_types(given: GivenOptions) -> list[str]:
    """Return the types of entities."""
    flags = {**NAME_FLAGS, **DEFAULT_FLAGS}
    return [
        *given.texts("entity-type"),
        *(kind for flag, kind in flags.items() if given.has(flag)),
    ]


def entities_of(given: GivenOptions) -> Entities:
    """Return the entities that options mean."""
    texts = iter(given.texts("entity-name"))
    names = []
    for option in given.occurrences:
        if option == "entity-name":
            names.append(next(texts))
        elif option == "entity-default":
            names.append("")
    names += [given.needed(flag) for flag in NAME_FLAGS if given.has(flag)]
    names += ["" for flag in DEFAULT_FLAGS if given.has(flag)]
    return Entities(entity_types(given), names)
