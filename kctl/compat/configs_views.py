"""`kafka-configs --describe`.

Source: ConfigCommand.describeResourceConfig, describeQuotaConfigs of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Final, TextIO

from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_rules import check_name
from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
    list_config_resources,
)
from engine.client.errors import NoCommonVersion
from engine.client.groups import list_groups
from engine.client.quota_admin import QuotaEntity, QuotaEntityFilter, describe_quotas
from engine.client.scram_admin import describe_credentials
from engine.config.value import format_double
from engine.errors import ApiError, EngineError
from engine.kafka_errors import RESOURCE_NOT_FOUND
from kctl.compat.configs_entities import ConfigsRefused, Entities
from kctl.compat.java_admin import admin_call, admin_failure
from kctl.compat.java_failures import ToolFailure, java_class, message_of
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import names_in_java_order, names_in_sized_java_order

_RESOURCES: Final = {
    "topics": (ConfigResourceType.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": (ConfigResourceType.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    "broker-loggers": (ConfigResourceType.BROKER_LOGGER, None),
    "client-metrics": (
        ConfigResourceType.CLIENT_METRICS,
        ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ),
    "groups": (ConfigResourceType.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
}
_QUOTA_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHOWN_TYPES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_UNSUPPORTED: Final = "org.apache.kafka.common.errors.UnsupportedVersionException"


def print_entity_configs(
    client: KafkaClient, given: GivenOptions, entities: Entities, out: TextIO
) -> None:
    """Print the settings of entities, as kafka-configs --describe does.

    Errors: ToolFailure, ConfigsRefused.
    """
    head = entities.types[0]
    if head in _RESOURCES:
        names = entities.names[:1] or _request_names(client, head, is_four=given.is_four)
        is_all = given.has("all")
        for name in names:
            if given.is_four and name and not is_all and not _exists(client, head, name):
                shown = f"{head[:-1]} '{name}'"
                out.write(f"The {shown} doesn't exist and doesn't have dynamic config.\n")
                return
            _print_resource(client, head, name, is_all=is_all, out=out)
        return
    for entity, quotas in request_quotas(client, entities).items():
        _print_quotas(entity, quotas, out)
    if head != "ips" and "clients" not in entities.types and "" not in entities.names:
        _print_credentials(client, entities, out)


def _request_names(client: KafkaClient, kind: str, *, is_four: bool) -> list[str]:
    """Request the names of all entities of a kind; "" is the cluster-wide default of brokers."""
    if kind == "topics":
        with admin_call("listTopics"):
            return names_in_java_order(client.view(None).topics)
    if kind == "client-metrics":
        return request_client_metrics_names(client, is_four=is_four)
    if kind == "groups":
        return [*dict.fromkeys([*_request_group_ids(client), *_request_configured_groups(client)])]
    with admin_call("listNodes"):
        return [*map(str, client.view([]).brokers), ""]


def request_client_metrics_names(client: KafkaClient, *, is_four: bool) -> list[str]:
    """Request the names of client metrics subscriptions; raises ToolFailure.

    The message of an unsupported request differs by release: the request was renamed in 4.1.
    """
    try:
        with admin_call("listClientMetricsResources"):
            found = list_config_resources(client, [ConfigResourceType.CLIENT_METRICS])
    except NoCommonVersion:
        name = "LIST_CONFIG_RESOURCES" if is_four else "LIST_CLIENT_METRICS_RESOURCES"
        raise ToolFailure(_UNSUPPORTED, f"The node does not support {name}") from None
    return [resource.name for resource in found]


def _request_group_ids(client: KafkaClient) -> list[str]:
    """Request the ids of the groups of all brokers; raises the first error."""
    with admin_call("listGroups"):
        groups, failures = list_groups(client)
        for failure in failures.values():
            raise failure
    return [group.group_id for group in groups]


def _request_configured_groups(client: KafkaClient) -> list[str]:
    """Request the groups that have settings; empty if brokers cannot list them."""
    try:
        with admin_call("listConfigResources"):
            found = list_config_resources(client, [ConfigResourceType.GROUP])
    except NoCommonVersion:
        return []
    return [resource.name for resource in found]


def _exists(client: KafkaClient, kind: str, name: str) -> bool:
    """Return True if the entity exists or has settings; 4.3.0 describes no others.

    Errors: ToolFailure, ConfigsRefused.
    """
    if kind == "topics":
        try:
            check_name(name)
        except TopicRefused as error:
            raise ConfigsRefused(message_of(error)) from error
        with admin_call("listTopics"):
            return name in client.view(None).topics
    if kind == "client-metrics":
        return name in request_client_metrics_names(client, is_four=True)
    if kind == "groups":
        return name in _request_group_ids(client) or name in _request_configured_groups(client)
    with admin_call("describeCluster"):
        return name in map(str, client.view([]).brokers)


def _print_resource(
    client: KafkaClient, kind: str, name: str, *, is_all: bool, out: TextIO
) -> None:
    """Print the settings of an entity; a name of "" means the default entity."""
    if name:
        out.write(f"{'All' if is_all else 'Dynamic'} configs for {kind[:-1]} {name} are:\n")
    else:
        out.write(f"Default configs for {kind} in the cluster are:\n")
    for entry in request_settings(client, kind, name, is_all=is_all):
        synonyms = ", ".join(f"{s.source.name}:{s.name}={_shown(s.value)}" for s in entry.synonyms)
        is_sensitive = str(entry.is_sensitive).lower()
        out.write(
            f"  {entry.name}={_shown(entry.value)} sensitive={is_sensitive} "
            f"synonyms={{{synonyms}}}\n"
        )


def _shown(value: str | None) -> str:
    """Return a value as Java prints it: "null" for a hidden or missing one."""
    return "null" if value is None else value


def request_settings(
    client: KafkaClient, kind: str, name: str, *, is_all: bool = False
) -> list[ConfigEntry]:
    """Request an entity's dynamic settings, or with `is_all` all effective ones, sorted by name.

    Errors: ToolFailure, ConfigsRefused.
    """
    resource_type, source = _RESOURCES[kind]
    if kind in ("brokers", "broker-loggers") and name and not is_java_number(name):
        message = f"The entity name for {kind} must be a valid integer broker id, found: {name}"
        raise ConfigsRefused(message)
    if kind == "brokers" and not name:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    resource = Resource(resource_type, name)
    with admin_call("describeConfigs"):
        found = describe_configs(client, [resource], with_synonyms=True)[resource]
    if isinstance(found, EngineError):
        raise admin_failure(found, "describeConfigs")
    return [entry for entry in found if is_all or source is None or entry.source is source]


# Quotas and credentials


def request_quotas(client: KafkaClient, entities: Entities) -> dict[QuotaEntity, dict[str, float]]:
    """Request the quotas by entity; a type without a name matches all its entities.

    Errors: ToolFailure, ConfigsRefused.
    """
    if len(entities.names) > len(entities.types):
        raise ConfigsRefused("More entity names specified than entity types")
    filters = [
        QuotaEntityFilter(_QUOTA_TYPES[kind], name)
        for kind, name in zip_longest(entities.types, entities.names)
    ]
    with admin_call("describeClientQuotas"):
        return describe_quotas(client, filters)


def quota_entity(entities: Entities) -> QuotaEntity:
    """Return the quota entity that types and names define together."""
    pairs = zip(entities.types, entities.names, strict=True)
    return tuple((_QUOTA_TYPES[kind], name or None) for kind, name in pairs)


def _print_quotas(entity: QuotaEntity, quotas: dict[str, float], out: TextIO) -> None:
    """Print the quotas of an entity in the order of Java's HashMap."""
    named = dict(entity)
    parts = []
    for kind, shown in _SHOWN_TYPES.items():
        if kind in named:
            name = named[kind]
            parts.append(f"the default {shown}" if name is None else f"{shown} '{name}'")
    keys = names_in_sized_java_order(quotas)
    values = ", ".join(f"{key}={format_double(quotas[key])}" for key in keys)
    out.write(f"Quota configs for {', '.join(parts)} are {values}\n")


def _print_credentials(client: KafkaClient, entities: Entities, out: TextIO) -> None:
    """Print each user's SCRAM iterations; no line for a user without credentials."""
    with admin_call("describeUserScramCredentials"):
        found = describe_credentials(client, entities.names)
    for user, credentials in found.items():
        if isinstance(credentials, ApiError):
            if credentials.code != RESOURCE_NOT_FOUND:
                name = java_class(credentials).rpartition(".")[2]
                out.write(
                    f"Error retrieving SCRAM credential configs for user-principal '{user}': "
                    f"{name}: {message_of(credentials)}\n"
                )
        elif isinstance(credentials, dict):
            shown = ", ".join(
                f"{mechanism.key}=iterations={iterations}"
                for mechanism, iterations in credentials.items()
            )
            out.write(f"SCRAM credential configs for user-principal '{user}' are {shown}\n")
