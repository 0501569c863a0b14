"""The topics of a copy: those missing at the destination are created as at the source.

Lists of throttled replicas are not copied, since brokers of another cluster have other ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigResourceType,
    ConfigSource,
    Resource,
    describe_configs,
)
from engine.client.metadata import TopicView
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.client.topic_admin import NewTopic
from engine.copying.copy_plan import CopiedTopic
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition

_LEFT_OUT: Final = frozenset(
    ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
)


class DestinationTooSmall(EngineError):
    """A topic at the destination has fewer partitions than at the source."""

    def __init__(self, topic: CopiedTopic, count: int) -> None:
        super().__init__(
            f"{topic.destination} has {count} partitions at the destination, and "
            f"{topic.source} has {topic.partition_count}"
        )
        self.hint = f"`kctl topics alter {topic.destination} -p {topic.partition_count}` adds some"
        self.topic = topic


class DestinationNotEmpty(EngineError):
    """A topic at the destination has records already that are not from an earlier copy."""

    hint = "--append copies after them; --prefix gives the copy another name"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"there are records already at the destination: {', '.join(names)}")
        self.names = names


class SettingsUnread(EngineError):
    """The settings of a topic of the source cannot be read."""

    def __init__(self, topic: str, cause: EngineError) -> None:
        super().__init__(f"settings of {topic} at the source: {cause}")
        self.hint = (
            "--no-settings makes topics without them; reading them takes the right DESCRIBE_CONFIGS"
        )
        self.topic = topic
        self.cause = cause


class Destination(NamedTuple):
    """The topics that exist at the destination, and those to create there."""

    there: list[CopiedTopic]
    missing: list[NewTopic]


def compare_topics(
    source: KafkaClient,
    destination: KafkaClient,
    topics: Sequence[CopiedTopic],
    *,
    replication_factor: int | None,
    with_settings: bool,
) -> Destination:
    """Return the topics that exist at the destination, and the requests to create the others.

    Without `replication_factor` a new topic gets that of the source, but at most the number of
    brokers; `with_settings` copies the settings that the source topic overrides. Errors: those of
    the requests, DestinationTooSmall if an existing topic has too few partitions.
    """
    view = destination.view({topic.destination for topic in topics})
    there, missing = [], []
    for topic in topics:
        found = view.topics[topic.destination]
        if found.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            missing.append(topic)
        elif found.error_code != NONE:
            raise api_error(found.error_code, f"{topic.destination} at the destination")
        elif len(found.partitions) < topic.partition_count:
            raise DestinationTooSmall(topic, len(found.partitions))
        else:
            there.append(topic)
    settings = _request_settings(source, missing) if with_settings else {}
    of_source = source.view({topic.source for topic in missing}).topics if missing else {}
    brokers = len(view.brokers)
    made = [
        NewTopic(
            topic.destination,
            topic.partition_count,
            replication_factor or min(_replica_count(of_source[topic.source]), brokers),
            configs=settings.get(topic.source, {}),
        )
        for topic in missing
    ]
    return Destination(there, made)


def _replica_count(topic: TopicView) -> int:
    """Return the largest number of replicas of any partition of a topic."""
    return max((len(partition.replicas) for partition in topic.partitions), default=1)


def _request_settings(
    source: KafkaClient, topics: Iterable[CopiedTopic]
) -> dict[str, Mapping[str, str]]:
    """Return the settings that each topic overrides at the source; raises SettingsUnread."""
    resources = [Resource(ConfigResourceType.TOPIC, topic.source) for topic in topics]
    settings: dict[str, Mapping[str, str]] = {}
    for resource, entries in describe_configs(source, resources).items():
        if isinstance(entries, EngineError):
            raise SettingsUnread(resource.name, entries)
        settings[resource.name] = {
            entry.name: entry.value
            for entry in entries
            if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
            and entry.value is not None
            and entry.name not in _LEFT_OUT
        }
    return settings


def check_empty(destination: KafkaClient, topics: Iterable[CopiedTopic]) -> None:
    """Raise DestinationNotEmpty if a destination topic has records.

    That is if its log end offset is above its log start offset. Errors: also those of the requests.
    """
    keys = [
        TopicPartition(topic.destination, number)
        for topic in topics
        for number in range(topic.partition_count)
    ]
    starts = list_offsets(destination, dict.fromkeys(keys, EARLIEST))
    ends = list_offsets(destination, dict.fromkeys(keys, LATEST))
    filled: dict[str, None] = {}
    for key in keys:
        start, end = starts[key], ends[key]
        if isinstance(start, EngineError):
            raise start
        if isinstance(end, EngineError):
            raise end
        if end.offset > start.offset:
            filled[key.topic] = None
    if filled:
        raise DestinationNotEmpty(list(filled))
