"""Requests the state of a cluster, to compare it with a declared one or to write it to a file."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from engine.client.acl_admin import describe_acls
from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
)
from engine.client.metadata import TopicView, topic_failure
from engine.client.quota_admin import QuotaEntityFilter, describe_quotas
from engine.client.reassignments import OngoingReassignment, request_moves
from engine.client.scram_admin import describe_credentials
from engine.declared.resources import (
    ALL_BROKERS,
    ClusterSetting,
    ClusterTopic,
    Entity,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from engine.security.scram import ScramMechanism

#: Topics per request; a response has some forty settings for each.
_TOPICS_PER_REQUEST: Final = 500
_EVERY_RULE: Final = AclFilter(
    PatternFilter(AclResource.ANY, None, PatternType.ANY),
    EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY),
)


def read_topics(
    client: KafkaClient,
    names: Iterable[str] | None = None,
    *,
    described: Container[str] | None = None,
) -> dict[str, ClusterTopic]:
    """Return the topics of a cluster by name (`names` None: all), without those that do not exist.

    Settings are read for the `described` topics, for all if it is None. Replicas are those after
    all ongoing reassignments. Raises the errors of the requests, and the ApiError of any topic.
    """
    wanted = None if names is None else sorted(set(names))
    view = client.view(wanted)
    there = []
    for name in sorted(view.topics):
        failure = topic_failure(view, name)
        if failure is None:
            there.append(name)
        elif failure.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise failure
    view, ongoing = request_moves(client, view)
    requested = [name for name in there if described is None or name in described]
    settings = _request_topic_settings(client, requested)
    # A topic that was deleted meanwhile is left out, too.
    gone = set(requested) - set(settings)
    return {
        name: _cluster_topic(view.topics[name], ongoing, settings.get(name, {}))
        for name in there
        if name not in gone
    }


def _cluster_topic(
    topic: TopicView,
    ongoing: dict[TopicPartition, OngoingReassignment],
    settings: dict[str, ClusterSetting],
) -> ClusterTopic:
    """Return a topic; its placement is the target of ongoing reassignments."""
    placement = []
    for partition in topic.partitions:
        move = ongoing.get(TopicPartition(topic.name, partition.partition))
        placement.append(partition.replicas if move is None else move.target)
    return ClusterTopic(tuple(placement), settings, topic.is_internal)


def _request_topic_settings(
    client: KafkaClient, names: Sequence[str]
) -> dict[str, dict[str, ClusterSetting]]:
    """Return the settings of topics by name, read by several requests.

    Topics that were deleted meanwhile are left out.
    """
    found: dict[str, dict[str, ClusterSetting]] = {}
    for first in range(0, len(names), _TOPICS_PER_REQUEST):
        resources = [
            Resource(ConfigResourceType.TOPIC, name)
            for name in names[first : first + _TOPICS_PER_REQUEST]
        ]
        for resource, settings in _request_settings(
            client, resources, ConfigSource.DYNAMIC_TOPIC_CONFIG
        ).items():
            found[resource.name] = settings
    return found


def _request_settings(
    client: KafkaClient, resources: Sequence[Resource], own: ConfigSource
) -> dict[Resource, dict[str, ClusterSetting]]:
    """Return the settings of resources by name, without topics that were deleted meanwhile.

    A setting is marked as set if it comes from the source `own`.
    """
    found: dict[Resource, dict[str, ClusterSetting]] = {}
    for resource, entries in describe_configs(client, resources).items():
        if isinstance(entries, EngineError):
            if isinstance(entries, ApiError) and entries.code == UNKNOWN_TOPIC_OR_PARTITION:
                continue
            raise entries
        found[resource] = {
            entry.name: ClusterSetting(
                entry.value, entry.type, entry.source is own, entry.is_sensitive
            )
            for entry in entries
        }
    return found


def read_users(client: KafkaClient) -> dict[str, dict[ScramMechanism, int]]:
    """Return the iterations of each user's SCRAM credentials; raises ApiError."""
    users: dict[str, dict[ScramMechanism, int]] = {}
    for name, credentials in describe_credentials(client, ()).items():
        if isinstance(credentials, EngineError):
            raise credentials
        users[name] = credentials
    return users


def read_rules(client: KafkaClient) -> frozenset[AclBinding]:
    """Return all ACLs; raises ApiError (SECURITY_DISABLED without an authorizer)."""
    return frozenset(describe_acls(client, _EVERY_RULE))


def read_quotas(client: KafkaClient) -> dict[Entity, dict[str, float]]:
    """Return the quotas of all entities, whose parts are in order; raises ApiError."""
    # Quotas of addresses are only returned if they are requested by type.
    any_address = [QuotaEntityFilter("ip", None)]
    found = describe_quotas(client, (), is_strict=False)
    found |= describe_quotas(client, any_address, is_strict=False)
    return {ordered_entity(entity): quotas for entity, quotas in found.items() if quotas}


def ordered_entity(entity: Entity) -> Entity:
    """Return an entity with its parts in order: user, client id, address."""
    order = ("user", "client-id", "ip")
    return tuple(sorted(entity, key=lambda part: order.index(part[0]) if part[0] in order else 9))


def read_brokers(client: KafkaClient) -> dict[str, dict[str, ClusterSetting]]:
    """Return the settings of each live broker and those for all brokers; raises ApiError."""
    kind = ConfigResourceType.BROKER
    shared = Resource(kind, ALL_BROKERS)
    single = [Resource(kind, str(id_)) for id_ in sorted(client.brokers_view().brokers)]
    found = _request_settings(client, [shared], ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    found |= _request_settings(client, single, ConfigSource.DYNAMIC_BROKER_CONFIG)
    return {resource.name: settings for resource, settings in found.items()}


def read_broker_ids(client: KafkaClient) -> frozenset[int]:
    """Return the ids of the live brokers."""
    return frozenset(client.brokers_view().brokers)
