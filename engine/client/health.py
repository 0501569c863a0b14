"""Overall health of a cluster: controller, partitions without replicas or leaders, throttles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
)
from engine.client.reassignments import request_moves
from engine.errors import EngineError

TOPIC_THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
BROKER_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)

#: The name of a throttle in the dynamic default of all brokers.
ALL_BROKERS: Final = "default"

_KINDS = {ConfigResourceType.TOPIC: "topic", ConfigResourceType.BROKER: "broker"}


class Throttle(NamedTuple):
    """A setting that slows replication down, of a topic, a broker or all brokers."""

    #: `topic` or `broker`.
    kind: str
    #: The topic's or the broker's, or `ALL_BROKERS`.
    name: str
    setting: str
    value: str


class ClusterHealth(NamedTuple):
    """The controller, the counts of under-replicated and offline partitions, and the throttles."""

    controller_id: int
    under_replicated: int
    offline: int
    throttles: list[Throttle]


def request_health(client: KafkaClient, broker_ids: Sequence[int]) -> ClusterHealth:
    """Return the health of a cluster that `kctl cluster` shows.

    It is the controller's id, the counts of under-replicated and leaderless partitions, and the
    replication throttles. Raises the errors of a Metadata request; a broker without a response has
    no throttles.
    """
    view, _ = request_moves(client, client.view(None))
    partitions = [p for topic in view.topics.values() for p in topic.partitions]
    alive = [broker_id for broker_id in broker_ids if broker_id in view.brokers]
    return ClusterHealth(
        view.controller_id,
        sum(partition.is_under_replicated for partition in partitions),
        sum(not partition.has_leader for partition in partitions),
        request_throttles(client, sorted(view.topics), alive),
    )


def request_throttles(
    client: KafkaClient, topics: Sequence[str], broker_ids: Sequence[int]
) -> list[Throttle]:
    """Return the replication throttles that are set for topics and for brokers.

    A broker or topic whose configs are not returned counts as without throttles.
    """
    of_topics = [Resource(ConfigResourceType.TOPIC, name) for name in topics]
    of_brokers = [Resource(ConfigResourceType.BROKER, str(id_)) for id_ in broker_ids]
    found: list[Throttle] = []
    for resources, names in ((of_topics, TOPIC_THROTTLES), (of_brokers, BROKER_THROTTLES)):
        if resources:
            found += throttles_in(describe_configs(client, resources, names=names))
    return found


def throttles_in(
    described: Mapping[Resource, Sequence[ConfigEntry] | EngineError],
) -> list[Throttle]:
    """Return the replication throttles in the settings that DescribeConfigs returned.

    A setting for all brokers is listed once, though each broker shows it.
    """
    names = (*TOPIC_THROTTLES, *BROKER_THROTTLES)
    found = [
        Throttle(_KINDS[resource.kind], _set_for(resource, entry), entry.name, entry.value)
        for resource, entries in described.items()
        if not isinstance(entries, EngineError)
        for entry in entries
        if entry.name in names and not entry.is_default and entry.value
    ]
    return list(dict.fromkeys(found))


def _set_for(resource: Resource, entry: ConfigEntry) -> str:
    """Return for which resource a throttle is set.

    It is a broker, a topic, or ALL_BROKERS (the default).
    """
    of_all = entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return ALL_BROKERS if of_all else resource.name
