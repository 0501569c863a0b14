"""Parse the entities in the arguments of `kafka-configs`.

Source: ConfigCommandOptions.entityTypes, entityNames of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.errors import EngineError
from kctl.compat.java_options import GivenOptions

#: Entity types by option: options with a name, and options for defaults.
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
    """The tool refuses the call: it prints the message on stderr, without a trace."""


class Entities(NamedTuple):
    """Entity types and names in the order of the options; "" is the default entity."""

    types: list[str]
    names: list[str]

    @property
    def has_name(self) -> bool:
        """Return True if an entity is named, not only the default entity (name "")."""
        return any(self.names)


def entity_types(given: GivenOptions) -> list[str]:
    """Return the entity types that --entity-type and flags such as --topic name, in that order."""
    flags = {**NAME_FLAGS, **DEFAULT_FLAGS}
    return [
        *given.texts("entity-type"),
        *(kind for flag, kind in flags.items() if given.has(flag)),
    ]


def parse_entities(given: GivenOptions) -> Entities:
    """Return the types and names of entities that kafka-configs is given, in order of options.

    A default entity is named "".
    """
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
