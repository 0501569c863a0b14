"""Entities that can have quotas (user, client id, both, or IP address), and their znodes.

| entity | node below `/config` | settings |
|---|---|---|
| user | `users/<u>` | quotas, credentials |
| user, client-id | `users/<u>/clients/<c>` | quotas, credentials (as in Kafka) |
| client-id | `clients/<c>` | quotas |
| ip | `ips/<a>` | connection_creation_rate |

A part without a name, `<default>`, is the default for all entities without a quota. Names are
sanitized, so that no name equals `<default>`.

Source: ZkAdminManager.parseAndSanitizeQuotaEntity, alterClientQuotas and
describeClientQuotas; KIP-546.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from engine.admin.config_errors import InvalidRequest, UnexpectedChange
from engine.config.key import ConfigKey, ConfigType, ip_keys, quota_keys, scram_keys
from engine.config.value import format_double
from engine.errors import ApiError
from engine.kafka_errors import UNSUPPORTED_VERSION
from engine.znode.paths import (
    CLIENT_CONFIGS,
    DEFAULT_ENTITY,
    IP_CONFIGS,
    USER_CONFIGS,
    sanitized,
    unsanitized,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_KINDS: Final = (USER, CLIENT_ID, IP)
#: Added before a fraction is truncated.
_EPSILON: Final = 1e-6
_INT_BITS: Final = {ConfigType.INT: 32, ConfigType.LONG: 64}

#: Names by kind of entity; None is the default.
Entity: TypeAlias = Mapping[str, str | None]


class UnknownEntityKind(ApiError):
    """A filter has an unsupported entity type."""

    def __init__(self, kind: str) -> None:
        super().__init__(UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        self.kind = kind


class EntityNode(NamedTuple):
    """The node of an entity, as named in a change note, and its valid keys."""

    path: str
    keys: Mapping[str, ConfigKey]


class QuotaChange(NamedTuple):
    """The new value of a quota; None removes it."""

    key: str
    value: float | None


def sanitized_name(name: str | None) -> str:
    """Return an entity's name as a part of a znode path; None is the default entity."""
    return DEFAULT_ENTITY if name is None else sanitized(name)


def name_of(node: str) -> str | None:
    """Return the name of the entity in a part of a znode path; None for the default entity."""
    return None if node == DEFAULT_ENTITY else unsanitized(node)


def node_of(entity: Entity, has_address: Callable[[str], bool]) -> EntityNode:
    """Return the znode of an entity's quotas and the keys it may have; raises InvalidRequest.

    `has_address` returns True for an address or a host name that can be resolved.
    """
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in _KINDS:
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    if IP in entity:
        if len(entity) > 1:
            raise InvalidRequest(
                "Invalid quota entity combination, IP entity should not be used with "
                "user/client ID entity."
            )
        ip = sanitized_name(entity[IP])
        if entity[IP] is not None and not has_address(ip):
            raise InvalidRequest(f"{ip} is not a valid IP or resolvable host.")
        return EntityNode(f"{IP_CONFIGS}/{ip}", ip_keys())
    path = path_of(entity)
    if USER in entity:
        return EntityNode(path, {**quota_keys(), **scram_keys()})
    return EntityNode(path, quota_keys())


def path_of(entity: Entity) -> str:
    """Return the path of an entity's znode, relative to `/config`."""
    if IP in entity:
        return f"{IP_CONFIGS}/{sanitized_name(entity[IP])}"
    client = f"{CLIENT_CONFIGS}/{sanitized_name(entity[CLIENT_ID])}" if CLIENT_ID in entity else ""
    if USER not in entity:
        return client
    user = f"{USER_CONFIGS}/{sanitized_name(entity[USER])}"
    return f"{user}/{client}" if client else user


def apply_quota_changes(
    current: Mapping[str, str], changes: Iterable[QuotaChange], keys: Mapping[str, ConfigKey]
) -> dict[str, str]:
    """Return an entity's settings after changes; a value of None removes a quota.

    Raises InvalidRequest and UnexpectedChange.
    """
    config = dict(current)
    for key, value in changes:
        if value is None:
            config.pop(key, None)
        elif key not in keys:
            raise InvalidRequest(f"Invalid configuration key {key}")
        else:
            config[key] = _stored_text(keys[key], value)
    return config


def _stored_text(key: ConfigKey, value: float) -> str:
    """Return a quota as the text in the znode.

    Raises InvalidRequest for a fraction where it must be whole.
    """
    if key.type is ConfigType.DOUBLE:
        return format_double(value)
    if key.type not in _INT_BITS:
        raise UnexpectedChange(f"{key.name} is no number")
    whole = _java_cast(value + _EPSILON, _INT_BITS[key.type])
    # A comparison with NaN is false, so NaN passes.
    if abs(whole - value) > _EPSILON:
        raise InvalidRequest(f"Configuration {key.name} must be a {key.type.name} value")
    return str(whole)


def _java_cast(value: float, bits: int) -> int:
    """Truncate a number to an integer of `bits` bits as a Java cast does; NaN is 0."""
    if math.isnan(value):
        return 0
    highest = (1 << bits - 1) - 1
    return int(max(-highest - 1, min(highest, value)))


# Filters of DescribeClientQuotas


class Component(NamedTuple):
    """One part of a filter: entities of a kind, with any name or a certain one."""

    kind: str
    is_any: bool
    #: The name, unless `is_any`; None is the default.
    name: str | None = None

    def matches(self, entity: Entity) -> bool:
        """Return True if an entity has this kind, with this name or any."""
        return self.kind in entity and (self.is_any or entity[self.kind] == self.name)


class QuotaFilter(NamedTuple):
    """A filter of quota entities; if strict, entities with other kinds do not match."""

    components: Sequence[Component]
    is_strict: bool

    def matches(self, entity: Entity) -> bool:
        """Return True if an entity matches all components; a strict filter allows no other kind."""
        if not all(component.matches(entity) for component in self.components):
            return False
        kinds = {component.kind for component in self.components}
        return not self.is_strict or kinds >= entity.keys()


def check_components(components: Sequence[Component]) -> None:
    """Raise InvalidRequest or UnknownEntityKind if the components of a filter are invalid."""
    seen: set[str] = set()
    for component in components:
        kind = component.kind
        if kind in seen:
            name = "client" if kind == CLIENT_ID else kind
            raise InvalidRequest(f"Duplicate {name} filter component entity type")
        if not kind:
            raise InvalidRequest("Unexpected empty filter component entity type")
        if kind not in _KINDS:
            raise UnknownEntityKind(kind)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )


def quotas_in(config: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> dict[str, float]:
    """Return those of an entity's settings that are quotas, by key.

    Raises UnexpectedChange if a value is not a number.
    """
    quotas = {}
    for key, text in config.items():
        if key in keys:
            try:
                quotas[key] = float(text)
            except ValueError as error:
                raise UnexpectedChange(f"{key} is {text!r}, which is no number") from error
    return quotas
