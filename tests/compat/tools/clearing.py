"""Remove rules, quotas, credentials and dynamic settings of brokers from a cluster."""

from __future__ import annotations

from typing import Final

from engine.client.acl_admin import delete_acls
from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    ConfigSource,
    Resource,
    alter_configs,
    describe_configs,
)
from engine.client.quota_admin import alter_quotas, describe_quotas
from engine.client.scram_admin import alter_credentials, describe_credentials
from engine.security.acls import (
    AclFilter,
    AclOperation,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from kctl.connect import ClusterOptions, connect

_BROKER_ID: Final = "1"
_SOURCES: Final = {
    _BROKER_ID: ConfigSource.DYNAMIC_BROKER_CONFIG,
    "": ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
}


def clear_cluster(address: str) -> None:
    """Remove all of it from the cluster of an address."""
    with connect(ClusterOptions(address)) as client:
        _clear_rules(client)
        for entity, quotas in describe_quotas(client, [], is_strict=False).items():
            alter_quotas(client, entity, dict.fromkeys(quotas))
        for user, found in describe_credentials(client, []).items():
            if isinstance(found, dict):
                alter_credentials(client, user, list(found), [])
        for name, source in _SOURCES.items():
            _clear_settings(client, Resource(ConfigResourceType.BROKER, name), source)


def _clear_rules(client: KafkaClient) -> None:
    patterns = PatternFilter(AclResource.ANY, None, PatternType.ANY)
    entries = EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY)
    delete_acls(client, [AclFilter(patterns, entries)])


def _clear_settings(client: KafkaClient, resource: Resource, source: ConfigSource) -> None:
    found = describe_configs(client, [resource])[resource]
    assert isinstance(found, list), found
    names = [entry.name for entry in found if entry.source is source]
    changes = [ConfigChange(ConfigOp.DELETE, name) for name in names]
    if changes:
        alter_configs(client, {resource: changes})
